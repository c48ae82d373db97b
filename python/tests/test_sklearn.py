"""The estimator passes scikit-learn's checks, as far as they hold for graphs."""

import logging
import pickle
import unittest
import warnings

import numpy as np
from test_heddle import needs, small

import heddle

QUICK = {"transport": "memory"}

# Checks that do not hold, and why.
EXPECTED = {"check_fit2d_1feature": "class means of a single column are one number: the program refuses to solve for it"}


@needs("sklearn")
class Estimator(unittest.TestCase):
    def test_checks(self):
        from sklearn.utils.estimator_checks import check_estimator

        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = check_estimator(heddle.HeddleClassifier(plan={**QUICK, "hops": 0}), on_fail=None, on_skip=None, expected_failed_checks=EXPECTED)
        failed = {one["check_name"]: str(one["exception"]) for one in done if one["status"] not in ("passed", "skipped", "xfail")}
        self.assertEqual(failed, {})
        self.assertGreater(sum(one["status"] == "passed" for one in done), 45)

    def test_graph(self):
        g = small(600)
        labels = np.array(["a", "b", "c"], object)[g.y]
        held = np.arange(600) % 4 == 0
        labels[held] = None
        with_edges = heddle.HeddleClassifier(plan=QUICK).fit(g.x, labels, g.edge_index, sites=g.site)
        alone = heddle.HeddleClassifier(plan={**QUICK, "hops": 0}).fit(g.x, labels, None, sites=g.site)
        truth = np.array(["a", "b", "c"])[g.y]
        scores = []
        for model, edges in ((with_edges, g.edge_index), (alone, None)):
            self.assertEqual(model.run_.metrics["peers"], 3)
            self.assertEqual(list(model.classes_), ["a", "b", "c"])
            scores.append(np.mean(model.predict(g.x, edges)[held] == truth[held]))
            np.testing.assert_allclose(model.predict_proba(g.x, edges).sum(1), 1, atol=1e-5)
        self.assertGreater(scores[0], scores[1])
        self.assertEqual(with_edges.score(g.x, truth, g.edge_index), np.mean(with_edges.predict(g.x, g.edge_index) == truth))
        again = pickle.loads(pickle.dumps(with_edges))
        np.testing.assert_array_equal(again.predict(g.x, g.edge_index), with_edges.predict(g.x, g.edge_index))

    def test_regressor(self):
        from sklearn.utils.estimator_checks import check_estimator

        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = check_estimator(heddle.HeddleRegressor(plan={**QUICK, "hops": 0}), on_fail=None, on_skip=None, expected_failed_checks=EXPECTED)
        self.assertEqual({one["check_name"]: str(one["exception"]) for one in done if one["status"] not in ("passed", "skipped", "xfail")}, {})
        g = small(600)
        y = g.x @ np.arange(12) + 3.0 * g.y
        with self.assertWarnsRegex(heddle.HeddleWarning, "r2 is not defined on the 1 validation nodes"):  # of one number there is no variance
            heddle.HeddleRegressor(plan=QUICK).fit(g.x[:5], y[:5])
        held = np.arange(600) % 4 == 0
        model = heddle.HeddleRegressor(plan=QUICK).fit(g.x, np.where(held, np.nan, y), g.edge_index, sites=g.site)
        self.assertGreater(model.score(g.x[held], y[held], np.zeros((2, 0))), 0.5)
        self.assertGreater(np.corrcoef(model.predict(g.x, g.edge_index)[held], y[held])[0, 1], 0.9)

    @needs("scipy")
    def test_sparse(self):
        import scipy.sparse as sp

        g = small()
        n = g.num_nodes
        a = sp.csr_matrix((np.ones(g.edge_index.shape[1]), g.edge_index), (n, n))
        model = heddle.HeddleClassifier(plan=QUICK).fit(sp.csr_matrix(g.x), g.y, a, sites=2)
        self.assertGreater(model.score(sp.csr_matrix(g.x), g.y, a), 0.6)


if __name__ == "__main__":
    unittest.main()
