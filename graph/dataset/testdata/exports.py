"""Writes one table and one graph as pandas and networkx export them.

    pip install pandas pyarrow networkx && python exports.py

frame.csv, frame.utf16.csv and frame.parquet hold the same rows, with an index without a name, categories, dates and
times with and without a zone; lists.parquet has the columns that only Parquet can hold, and a range as index.
friends.csv and friends.edgelist hold a graph.
"""
import os

import networkx as nx
import numpy as np
import pandas as pd

os.chdir(os.path.dirname(os.path.abspath(__file__)))
n = 40
k = np.arange(n)
frame = pd.DataFrame({
    "born": pd.date_range("1960-01-03", periods=n, freq="37D").date,
    "seen": pd.date_range("2024-01-01 08:30", periods=n, freq="31h"),
    "zone": pd.date_range("2024-03-20 08:30", periods=n, freq="31h", tz="Europe/Berlin"),
    "city": pd.Categorical(np.where(k % 3 == 0, "Köln", "Zürich")),
    "count": pd.array([None if i % 5 == 0 else int(i) for i in k], dtype="Int64"),
    "ratio": k / 7,
    "class": np.where(k % 4 < 2, "yes", "no"),
}, index=[f"p{i}" for i in k])
frame.loc["p3", "seen"] = pd.NaT
frame.to_parquet("frame.parquet")
frame.to_csv("frame.csv")
frame.to_csv("frame.utf16.csv", encoding="utf-16", sep="\t")
pd.DataFrame({
    "vector": [[float(i), float(i % 7)] for i in k], "tags": [["a", "b"][:1 + i % 2] for i in k], "class": np.where(k % 4 < 2, "yes", "no"),
}).to_parquet("lists.parquet")

g = nx.relabel_nodes(nx.krackhardt_kite_graph(), lambda i: f"friend {i}")
for i, (a, b) in enumerate(g.edges):
    g[a][b]["weight"] = 1 + i % 3
for i, a in enumerate(g):
    g.nodes[a]["age"], g.nodes[a]["class"] = 20 + i, "ab"[i % 2]
pd.DataFrame.from_dict(dict(g.nodes(data=True)), orient="index").to_csv("friends.csv")
nx.write_edgelist(g, "friends.edgelist", delimiter="\t", data=["weight"])
