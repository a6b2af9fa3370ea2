"""Makes providers' texts fit to be stored."""


def storable(text: str) -> str:
    """A model's text without NUL and lone surrogates, which JSON can carry and a database cannot."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
