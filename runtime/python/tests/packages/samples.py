"""What packages are given: an image, a sound and texts, the same in every process."""

from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

RATE = 16000


@cache
def page():
    """A page with some lines of text and two boxes, as RGB."""
    image = Image.new("RGB", (640, 480), "white")
    drawn, font = ImageDraw.Draw(image), ImageFont.load_default(36)
    for at, line in enumerate(["Oarlock runs models", "on any device", "12 + 34 = 46"]):
        drawn.text((40, 40 + 70 * at), line, fill="black", font=font)
    drawn.rectangle((60, 280, 260, 440), fill="steelblue")
    drawn.rectangle((340, 300, 400, 360), outline="gray", fill="lightgray")
    return np.asarray(image)


@cache
def word():
    """An image of one word."""
    image = Image.new("RGB", (160, 60), "white")
    ImageDraw.Draw(image).text((20, 8), "K7xQ", fill="black", font=ImageFont.load_default(36))
    return np.asarray(image)


@cache
def scene():
    """A picture without a meaning: smooth colors with some noise."""
    rows, columns = np.mgrid[:480, :640] / 640
    colors = np.stack([np.sin(9 * rows + 3), np.cos(7 * columns), np.sin(5 * (rows + columns))], axis=-1)
    noise = np.random.default_rng(1).normal(0, 0.05, colors.shape)
    return np.clip((colors + noise) * 100 + 128, 0, 255).astype(np.uint8)


@cache
def sound(seconds=4):
    """A tone with overtones that glides and pauses, with some noise; in -1…1."""
    time = np.arange(seconds * RATE) / RATE
    phase = 2 * np.pi * np.cumsum(180 + 60 * np.sin(2 * np.pi * 0.7 * time)) / RATE
    voice = sum(np.sin(phase * overtone) / overtone for overtone in range(1, 12))
    loud = np.clip(np.sin(2 * np.pi * 0.8 * time) * 3, 0, 1)
    noise = np.random.default_rng(2).normal(0, 0.01, time.shape)
    return (0.3 * voice * loud + noise).clip(-1, 1).astype(np.float32)
