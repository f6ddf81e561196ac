"""document_commands: what the commands that README and GUIDE show need, or say instead, where the machine has no cluster."""

COMMITMENTS = " && ".join(
    f"assay draw commit run/dossier --key {key}.key --policy trust.json --cells 8 --out {role}.commit"
    for key, role in (("buyer", "buyer"), ("lab", "vendor"))
)
REVEALS = COMMITMENTS + "".join(
    f" && assay draw reveal run/dossier --key {key}.key --policy trust.json --commitment {role}.commit"
    f" --other {other}.commit --out {role}.reveal"
    for key, role, other in (("buyer", "buyer", "vendor"), ("lab", "vendor", "buyer"))
)
# What a command needs beside the files of `Commands.setUp`, by its beginning.
CONTRIBUTE = "assay commons contribute run/dossier --with-key lab.key.pub --key lab.key --out site.figures"
PREPARE = {
    "assay commons merge": CONTRIBUTE,
    "assay commons show": CONTRIBUTE
    + " && assay commons merge site.figures --with-key lab.key.pub --key buyer.key --out all.figures",
    "assay-report keygen": "rm lab.key lab.key.pub",
    "assay keygen": "rm lab.key lab.key.pub",
    "assay run plan.json": "mv run before",
    "assay compare run": "cp -r run again",
    "assay sign run": "rm -r run/dossier",
    "assay-report verify run/dossier --policy": "assay-report sign run/dossier --add --key buyer.key --policy trust.json",
    "assay draw": "assay-report sign run/dossier --add --key buyer.key --policy trust.json",
    "assay draw reveal": COMMITMENTS,
    "assay draw challenge": REVEALS,
    "assay draw plan": REVEALS
    + " && assay draw challenge run/dossier --policy trust.json --commitment buyer.reveal --seed buyer.commit.seed"
    " --commitment vendor.reveal --seed vendor.commit.seed --out draw.json",
    "assay site check": "cp local.json site.json",
    "assay site sbatch": "cp slurm.json site.json",
    "assay site --from lldp": "cp uncabled.json site.json",
    "assay site --from ibnetdiscover": "cp uncabled.json site.json",
}
# Commands about a cell or unit that only a fleet with a fault has, or about several runs (transcript_test.py has those), and what they
# say without.
REFUSED = {
    "assay-report waive run/dossier": "no cell that does not pass is chosen",
    "assay merge north": "north/dossier: is not a folder",
    "assay sign fleet": "fleet: is not a folder",
    "assay verify fleet --policy": "fleet: is not a folder",
    "assay expand first": "first/dossier: is not a folder",
    "assay rma gpu:": "is neither the id of a unit nor the name of a node in this history",
    "assay rma --check": "rma-103: is not a folder",
}
# Commands that would measure this machine or nodes that do not exist, and what makes them say what they would do.
REHEARSE = {"accept": " --dry-run", "sweep": " --dry-run", "bundle": " --library-path libraries --dry-run"}


def sweep_without_visits(name):
    """The sweep.json of a sweep in which no node is due."""
    plan = {
        "schema": "assay.due/1",
        "id": name,
        "night": "2026-01-05",
        "night_given": False,
        "started": "2026-01-05T23:00:00.000Z",
        "until": "",
        "profile": "nightly-15m",
        "budget_s": 900,
        "stagger_s": 0,
        "only": [],
        "left_out": [],
        "acceptance": "none",
        "due": [],
    }
    return {"schema": "assay.sweep/1", "plan": plan, "visits": [], "runs": [], "findings": []}
