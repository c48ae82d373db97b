package retexo

import (
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/pace"
)

// fetched goes on from the state that all hold now.
func (m *machine) fetched(at *train.Position) ready {
	m.at, m.held, m.stale = *at, true, at.BestRound >= 0
	if at.Stage == m.config.Stages() {
		return do(work{Kind: doFinish})
	}
	return do(work{Kind: doHold, Stage: at.Stage})
}

// What a peer has of the rows of a stage.
const (
	noRows  = 0 // nothing
	ownRows = 1 // the stage's input of its own nodes
	allRows = 2 // that, and what was to be exchanged
)

// placed brings the rows of the stage at hand into place, of which every peer has have at least.
func (m *machine) placed(have int) ready {
	switch have {
	case allRows:
		return m.resume()
	case ownRows:
		if m.config.Inductive && m.at.Stage == 1 { // nobody may have got so far, or not with these members
			return do(work{Kind: doPrepare, Stage: m.at.Stage})
		}
		return m.enter(m.at.Stage, 0)
	}
	m.rebuild = m.at.Stage
	return do(work{Kind: doCarry})
}

// carried goes on with a rebuild when the rows of the stage after w's are computed.
func (m *machine) carried(stage int) ready {
	if stage == 0 && m.config.Inductive {
		return do(work{Kind: doPrepare, Stage: m.rebuild})
	}
	return m.enter(stage+1, 0)
}

// again begins a new generation where the run stands.
func (m *machine) again() {
	m.next, m.waiting = do(work{Kind: doHello}), false
	m.rebuild, m.synced, m.regroup, m.warm = 0, 0, false, false
	if m.pace != nil {
		m.pace = pace.New(m.who.Size) // members may have seen other rounds; all begin alike
	}
}
