"""Opens served notebooks in a browser, as a reader does, through WebDriver.

    browse.py ADDRESS PASSWORD NOTEBOOKS

It logs in, runs every notebook in NOTEBOOKS and compares the output of each cell with the output stored in the file; then it
changes the first one and saves it.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

CHANGED = "6 * 7"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,1600",
]


class Browser:
    """Chromium, controlled through chromedriver."""

    def __init__(self, directory):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        line = next(line for line in self.driver.stdout if "successfully on port" in line)
        port = line.split("successfully on port")[1].strip(" .\n")
        self.address = f"http://127.0.0.1:{port}/session"
        options = {"binary": shutil.which("chromium"), "args": [*ARGUMENTS, f"--user-data-dir={directory}"]}
        options = {"browserName": "chrome", "goog:chromeOptions": options}
        self.address += "/" + self.ask("POST", "", {"capabilities": {"alwaysMatch": options}})["sessionId"]

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, address):
        self.ask("POST", "/url", {"url": address})

    def run(self, script):
        """Runs a script in the page and returns its result."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": []})

    def type(self, selector, text):
        element = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        self.ask("POST", f"/element/{next(iter(element.values()))}/value", {"text": text})

    def wait(self, what, script, seconds=90):
        """Waits until a script in the page returns a true value; `what` names it in the error after a timeout."""
        end = time.monotonic() + seconds
        while not (given := self.run(script)):
            if time.monotonic() > end:
                shown = self.run("return document.body.innerText.slice(0, 1000)")
                sys.exit(f"error: expected {what} within {seconds} s, found a page that shows:\n{shown}")
            time.sleep(0.1)
        return given

    def close(self):
        self.ask("DELETE", "")
        self.driver.terminate()


IS_READY = "return window.Jupyter && Jupyter.notebook && Jupyter.notebook.kernel && Jupyter.notebook.kernel.is_connected()"
IS_DONE = """
const cells = Jupyter.notebook.get_cells().filter(cell => cell.cell_type == "code");
return cells.every(cell => Number.isInteger(cell.input_prompt_number) && !cell.element.hasClass("running"));
"""
SHOWN = """
const shown = cell => [...cell.element[0].querySelectorAll(".output_subarea")].map(it => it.innerText.trimEnd());
return Jupyter.notebook.get_cells().filter(cell => cell.cell_type == "code").map(shown);
"""


def kept(file):
    """The output of each cell that is stored in the notebook file."""
    cells = [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]
    texts = [[output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]] for cell in cells]
    return [["".join(text).rstrip() for text in shown] for shown in texts]


def log_in(browser, address, password):
    browser.open(f"{address}/")
    browser.wait("a field for the password", "return document.querySelector('#password_input')")
    browser.type("#password_input", "not it\n")
    browser.wait("a wrong password to be refused", "return document.querySelector('.message.error')")
    browser.type("#password_input", f"{password}\n")
    browser.wait("a list of files", "return document.querySelector('#notebook_list .item_link')")


def show(browser, expected):
    """Waits for the expected output. The page may report that a cell has run a moment before its output arrives."""
    end = time.monotonic() + 30
    while (shown := browser.run(SHOWN)) != expected:
        if time.monotonic() > end:
            sys.exit(f"error: {browser.run('return document.title')}: expected {expected}, found {shown}")
        time.sleep(0.1)
    return shown


def run_all(browser, address, file):
    browser.open(f"{address}/notebooks/tutorial/{file.name}")
    browser.wait("a kernel", IS_READY)
    browser.run("Jupyter.notebook.clear_all_output(); document.querySelector('#run_all_cells').click()")
    browser.wait("all cells to have run", IS_DONE)
    shown = show(browser, kept(file))
    print(f"{file.name}: {len(shown)} cells show what they should")


def change(browser, address, file):
    browser.open(f"{address}/notebooks/tutorial/{file.name}")
    browser.wait("a kernel", IS_READY)
    browser.run(f"const cell = Jupyter.notebook.insert_cell_at_bottom('code'); cell.set_text('{CHANGED}'); cell.execute()")
    browser.wait("a new cell to have run", IS_DONE)
    show(browser, [*kept(file), ["42"]])
    browser.run("Jupyter.notebook.save_notebook()")
    browser.wait("the notebook to be saved", "return !Jupyter.notebook.dirty")


def main(address, password, notebooks):
    files = sorted(pathlib.Path(notebooks).glob("*.ipynb"))
    with tempfile.TemporaryDirectory() as directory:
        browser = Browser(directory)
        try:
            log_in(browser, address, password)
            for file in files:
                run_all(browser, address, file)
            change(browser, address, files[0])
        finally:
            browser.close()


main(*sys.argv[1:])
