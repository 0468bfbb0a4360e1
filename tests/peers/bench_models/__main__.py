"""Makes the models that `scripts/bench --models` measures.

    python tests/peers/bench_models DIR [NAME...]    all models, or those named
    python tests/peers/bench_models --list           what there is

DIR/NAME.onnx has seeded random weights and the ops that exporters write; it is as fast as a trained model, and its outputs mean
nothing. Beside it lie NAME.inputs.npz with inputs for batch 1 and, where the batch is symbolic, NAME.batch8.npz for batch 8.
The files are the same on every machine. All of them take about 1.8 GB.

`tests/peers/quantize.py DIR/NAME.onnx` adds a model in eight bits. Needs NumPy and onnx, in the versions that
tests/peers/requirements.txt pins.
"""

import argparse
import pathlib
import sys

import detection
import llm
import ocr
import recurrent
import small
import text
import trees
import vision

# What makes each model, and what it is.
MODELS = {
    "add1": (small.add1, "a single Add: the cost of a call"),
    "mlp": (small.mlp, "784-256-256-10"),
    "resnet50": (vision.resnet50, "ResNet-50, 224 × 224"),
    "mobilenetv2": (vision.mobilenetv2, "MobileNetV2, 224 × 224"),
    "unet": (vision.unet, "U-Net of 32 to 512 channels, 256 × 256"),
    "vit": (vision.vit, "ViT-S/16, 224 × 224"),
    "yolo": (detection.yolo, "a detector after YOLOv8n, 640 × 640"),
    "text_detector": (ocr.text_detector, "DBNet on MobileNetV3, any size, 480 × 640"),
    "text_recognizer": (ocr.text_recognizer, "CRNN with two bidirectional LSTMs, 48 × any width, 320"),
    "bert_base": (text.bert_base, "BERT base, 128 tokens"),
    "embedding": (text.embedding, "embeddings after MiniLM-L6, 128 tokens"),
    "gpt2_step": (text.gpt2_step, "GPT-2 small, one token after 128"),
    "llm_step": (llm.llm_step, "12 layers in 4 bits with grouped-query attention, one token after 128"),
    "lstm": (recurrent.tagger, "a tagger of two bidirectional LSTMs, 100 words"),
    "transducer": (recurrent.transducer, "LSTM transducer, 200 frames of 80 mels, 8 labels"),
    "trees": (trees.trees, "500 trees of depth 8, 28 features"),
}


def arguments():
    parser = argparse.ArgumentParser(
        prog="tests/peers/bench_models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path, nargs="?", help="where to write, created if missing")
    parser.add_argument("names", metavar="NAME", nargs="*", help="which models, all by default")
    parser.add_argument("--list", action="store_true", help="print the models, and write nothing")
    options = parser.parse_args()
    if not options.list and options.folder is None:
        parser.error("expected a directory to write to, found none; `--list` needs none")
    unknown = [name for name in options.names if name not in MODELS]
    if unknown:
        parser.error(f"expected names of {', '.join(MODELS)}, found {', '.join(unknown)}")
    return options


def main():
    options = arguments()
    if options.list:
        for name, (_, what) in MODELS.items():
            print(f"{name:16} {what}")
        return
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        sys.exit(f"error: `{options.folder}`: expected a directory to write to, found: {problem.strerror}")
    for name in options.names or MODELS:
        graph = MODELS[name][0]()
        path = graph.save(options.folder)
        batches = "batch 1 and 8" if graph.large_feeds else "batch 1"
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, {len(graph.nodes)} nodes, {batches}", flush=True)


if __name__ == "__main__":
    main()
