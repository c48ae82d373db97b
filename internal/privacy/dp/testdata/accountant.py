"""Writes accountant.json: what Google's dp-accounting says of Gaussian mechanisms.

    pip install dp-accounting==0.6.0 && python accountant.py > accountant.json

one: a single mechanism, analytically. many: several mechanisms by their privacy loss distribution,
whose grid makes the figure an upper bound; interval is the grid.
"""
import json

from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant as pld, privacy_loss_mechanism as loss
from dp_accounting.rdp import rdp_privacy_accountant as rdp

one = []
for z in (0.3, 0.6, 1.0805, 1.64, 3.731, 5.0, 30.6, 200.0):
    m = loss.GaussianPrivacyLoss(z, sensitivity=1)
    for epsilon in (0.0, 0.01, 0.5, 1.0, 4.0, 8.0):
        delta = float(m.get_delta_for_epsilon(epsilon))
        if delta > 1e-13:
            one.append({"z": z, "epsilon": epsilon, "delta": delta})

many = []
INTERVAL = 1e-4
for zs in ([1.64], [1.64] * 2, [5.0] * 4, [3.0, 7.0, 11.0], [20.0] * 400, [1.528] * 2):
    event = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(z) for z in zs])
    p = pld.PLDAccountant(value_discretization_interval=INTERVAL).compose(event).get_epsilon(1e-5)
    r = rdp.RdpAccountant().compose(event).get_epsilon(1e-5)
    many.append({"z": zs, "delta": 1e-5, "epsilon_pld": float(p), "epsilon_rdp": float(r)})

print(json.dumps({"one": one, "many": many, "interval": INTERVAL}, indent=1))
