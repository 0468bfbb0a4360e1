"""Quantizes a float model to int8 with onnxruntime, for `scripts/bench --models`.

    quantize.py MODEL.onnx [--activations u8|i8] [--output OUTPUT.onnx]

MODEL.inputs.npz beside MODEL.onnx calibrates the model. It is copied beside the output, by default MODEL_int8.onnx, and so are the
inputs for larger batches. Activations have 8 bits, weights 8 bits with a scale for each channel, in QDQ form (QuantizeLinear and
DequantizeLinear).
"""

import argparse
import pathlib
import shutil

import numpy
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static


class Feeds(CalibrationDataReader):
    """The inputs of one run."""

    def __init__(self, path):
        self.feeds = iter([dict(numpy.load(path))])

    def get_next(self):
        return next(self.feeds, None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--activations", default="u8", choices=["u8", "i8"])
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    inputs = arguments.model.with_suffix(".inputs.npz")
    output = arguments.output or arguments.model.with_name(f"{arguments.model.stem}_int8.onnx")
    activations = QuantType.QUInt8 if arguments.activations == "u8" else QuantType.QInt8
    quantize_static(
        arguments.model,
        output,
        Feeds(inputs),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=activations,
        weight_type=QuantType.QInt8,
    )
    for path in arguments.model.parent.glob(f"{arguments.model.stem}.*.npz"):
        shutil.copyfile(path, output.with_name(output.stem + path.name.removeprefix(arguments.model.stem)))


if __name__ == "__main__":
    main()
