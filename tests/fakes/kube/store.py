"""The objects of the API server, every change in its order, and selectors."""
import copy
import threading
import time
import uuid


class Store:
    """Objects by (plural, namespace, name), and every change in its order."""

    def __init__(self):
        self.objects, self.changes, self.changed = {}, [], threading.Condition()

    def put(self, plural, document):
        meta = document["metadata"]
        key = (plural, meta.get("namespace", ""), meta["name"])
        with self.changed:
            kind = "MODIFIED" if key in self.objects else "ADDED"
            meta.setdefault("uid", str(uuid.uuid4()))
            meta.setdefault("creationTimestamp", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
            meta["resourceVersion"] = str(len(self.changes) + 1)
            self.objects[key] = document
            self.changes.append((kind, plural, copy.deepcopy(document)))
            self.changed.notify_all()
        return document

    def remove(self, plural, namespace, name):
        with self.changed:
            document = self.objects.pop((plural, namespace, name), None)
            if document is not None:
                self.changes.append(("DELETED", plural, copy.deepcopy(document)))
                self.changed.notify_all()
        return document

    def get(self, plural, namespace, name):
        with self.changed:
            return copy.deepcopy(self.objects.get((plural, namespace, name)))

    def list(self, plural, namespace=""):
        with self.changed:
            return [
                copy.deepcopy(document)
                for (one, where, _), document in sorted(self.objects.items())
                if one == plural and namespace in ("", where)
            ]


def selected(document, query):
    labels = document["metadata"].get("labels", {})
    for word in filter(None, query.get("labelSelector", "").split(",")):
        key, _, value = word.partition("=")
        if labels.get(key) != value.lstrip("="):
            return False
    for word in filter(None, query.get("fieldSelector", "").split(",")):
        key, _, value = word.partition("=")
        place = document
        for part in key.split("."):
            place = place.get(part, {}) if isinstance(place, dict) else {}
        if place != value.lstrip("="):
            return False
    return True
