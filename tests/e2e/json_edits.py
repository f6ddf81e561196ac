"""json_edits: changes of a JSON document, written as text."""
import copy
import json
import re


def value_of(text):
    """JSON where it is any, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def member(document, name):
    """The place `name` of a document: a number, or in a list the id, name or kind of the first element that has it."""
    if isinstance(document, dict):
        return name
    if re.fullmatch(r"-?\d+", name):
        return int(name)
    return next(i for i, one in enumerate(document) if name in (one.get("id"), one.get("name"), one.get("kind")))


def edit(document, *changes):
    """Changes a document: /place=VALUE sets, /list+=VALUE appends, /list*=2 repeats, drop:/place takes out; a VALUE @/place is a copy of that
    place, * in a place is every element."""
    for change in changes:
        drop, place, sign, value = re.fullmatch(r"(drop:)?(/.*?)(?:(=|\+=|\*=)(.*))?", change, re.DOTALL).groups()
        *way, last = place[1:].split("/")
        if isinstance(value, str) and value.startswith("@/"):
            at = document
            for name in value[2:].split("/"):
                at = at[member(at, name)]
            value = copy.deepcopy(at)
        elif value is not None:
            value = value_of(value)
        places = [document]
        for name in way:
            places = [inner for one in places for inner in (list(one) if name == "*" else [one[member(one, name)]])]
        for one in places:
            at = member(one, last)
            if drop:
                del one[at]
            elif sign == "=":
                one[at] = value
            elif sign == "+=":
                one[at].append(value)
            else:
                one[at] = one[at] * value
