"""An ensemble of decision trees, as converters write one of XGBoost."""

from graph import BATCH, LARGE_BATCH, GraphBuilder

DOMAIN = "ai.onnx.ml"
# From this depth on, so many nodes are leaves already, so that the trees are not all full.
FIRST_LEAVES = 4
LEAF_SHARE = 0.1


def tree_nodes(g, depth, features):
    """The nodes of one tree in the order of their depth: the columns of a table."""
    columns = {"featureids": [], "values": [], "truenodeids": [], "falsenodeids": [], "modes": []}
    width, count = 1, 1
    for place in range(depth + 1):
        leaves = g.generator.random(width) < LEAF_SHARE
        thresholds = g.normal((width,), 0.8)
        asked = g.generator.integers(0, features, width)
        branches = [place < depth and not (place >= FIRST_LEAVES and is_leaf) for is_leaf in leaves]
        for index, is_branch in enumerate(branches):
            columns["modes"].append("BRANCH_LT" if is_branch else "LEAF")
            columns["featureids"].append(int(asked[index]) if is_branch else 0)
            columns["values"].append(float(thresholds[index]) if is_branch else 0.0)
            columns["truenodeids"].append(count if is_branch else 0)
            columns["falsenodeids"].append(count + 1 if is_branch else 0)
            count += 2 * is_branch
        width = 2 * sum(branches)
    return columns


def trees(count=500, depth=8, features=28):
    g = GraphBuilder("trees", 500)
    x = g.batched("features", g.normal((LARGE_BATCH, features), 1))
    table = {}
    for tree in range(count):
        columns = tree_nodes(g, depth, features)
        size = len(columns["modes"])
        columns |= {"treeids": [tree] * size, "nodeids": list(range(size)), "hitrates": [1.0] * size}
        columns["missing_value_tracks_true"] = [int(mode != "LEAF") for mode in columns["modes"]]
        for name, values in columns.items():
            table.setdefault(f"nodes_{name}", []).extend(values)
    places = [place for place, mode in enumerate(table["nodes_modes"]) if mode == "LEAF"]
    targets = {
        "target_treeids": [table["nodes_treeids"][place] for place in places],
        "target_nodeids": [table["nodes_nodeids"][place] for place in places],
        "target_ids": [0] * len(places),
        "target_weights": g.normal((len(places),), 0.05).tolist(),
    }
    options = {"n_targets": 1, "base_values": [0.5], "post_transform": "NONE"}
    g.op("TreeEnsembleRegressor", x, out="variable", domain=DOMAIN, **table, **targets, **options)
    g.output("variable", [BATCH, 1])
    return g
