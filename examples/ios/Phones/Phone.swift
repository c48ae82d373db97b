// Not compiled: it needs Xcode.
import Foundation
import Mobile

/// A row of the app's table: somebody whom the owner of the phone writes with.
struct Contact: Sendable {
    let name: String
    let sent, received: Int
    let nights: Int // messages between 22 and 6 o'clock
    let answersSoon: Bool? // nil: not known yet
}

/// Two contacts who are in one group.
struct Tie: Sendable {
    let a, b: String
}

/// What the screen shows.
struct Progress: Sendable {
    var state = MobileIdle
    var round = 0, rounds = 0
    var sentBytes: Int64 = 0
    var fault: String?
}

/// This phone as a member of the federation.
final class Phone {
    private let device: MobileDevice

    init(directory: URL, plan: Data?, store: any MobileStoreProtocol) throws {
        guard let config = MobileNewConfig(directory.path) else { throw CocoaError(.fileNoSuchFile) }
        config.setPlan(plan)
        var fault: NSError?
        guard let device = MobileNewDevice(config, store, &fault) else { throw fault ?? CocoaError(.featureUnsupported) }
        self.device = device
    }

    /// The ID that the federation's plan lists.
    var id: String { device.id_() }

    /// Trains until the model is final, the window is over or pause is called.
    func train(_ contacts: [Contact], _ ties: [Tie], show: @escaping @Sendable (Progress) -> Void) async throws {
        try device.setGraph(graph(contacts, ties))
        let watch = Watch(show)
        try device.start(watch)
        await watch.end()
    }

    /// Ends the work within a second. The next train goes on.
    func pause() { device.pause() }

    func allow(charging: Bool, unmetered: Bool, idle: Bool) { device.allow(charging, unmetered: unmetered, idle: idle) }

    /// The probability that each contact answers soon.
    func predict(_ contacts: [Contact], _ ties: [Tie]) throws -> [String: Double] {
        let g = try graph(contacts, ties)
        let all = try device.predict(g)
        var likely: [String: Double] = [:]
        for c in contacts {
            var p = 0.0
            try all.probability(g.node(c.name), class: 1, ret0_: &p)
            likely[c.name] = p
        }
        return likely
    }
}

/// Makes the graph of the rows. Counts are scaled as at all members: by their logarithm.
func graph(_ contacts: [Contact], _ ties: [Tie]) throws -> MobileGraph {
    var fault: NSError?
    guard let g = MobileNewGraph(3, 2, &fault) else { throw fault ?? CocoaError(.featureUnsupported) }
    for c in contacts {
        var node = 0
        try g.addNode(c.name, ret0_: &node)
        let row = [c.sent, c.received, c.nights].map { Float32(log1p(Double($0))).bitPattern.littleEndian }
        try g.setFeatures(node, row: row.withUnsafeBytes { Data($0) })
        if let soon = c.answersSoon {
            try g.setLabel(node, class: soon ? 1 : 0)
        }
    }
    for t in ties {
        try g.addEdge(g.node(t.a), b: g.node(t.b))
    }
    return g
}

/// Passes on what the device tells, and waits for its end. The library calls it from one thread at a time.
private final class Watch: NSObject, MobileListenerProtocol, @unchecked Sendable {
    private let show: @Sendable (Progress) -> Void
    private var now = Progress()
    private let (over, done) = AsyncStream.makeStream(of: Void.self)

    init(_ show: @escaping @Sendable (Progress) -> Void) { self.show = show }

    func end() async {
        for await _ in over { return }
    }

    func onState(_ state: String?, detail: String?) throws {
        now.state = state ?? ""
        show(now)
        if [MobileDone, MobilePaused, MobileFailed, MobileStopped].contains(now.state) {
            done.yield()
            done.finish()
        }
    }

    func onRound(_ round: Int, total: Int, loss: Double, metric: Double) throws {
        (now.round, now.rounds) = (round, total)
        show(now)
    }

    func onBytes(_ sent: Int64) throws {
        now.sentBytes = sent
        show(now)
    }

    func onError(_ kind: String?, text: String?) throws {
        now.fault = text
        show(now)
    }
}
