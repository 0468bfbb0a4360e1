"""Files that appear only when they are complete."""


def write_file(path, content):
    """Writes bytes, and makes the directory if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)
