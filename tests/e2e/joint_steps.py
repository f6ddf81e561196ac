"""joint_steps: the steps of attacks/joint.cases."""
from json_edits import edit
from joints import RUNS, Joints
from policy_steps import PolicySteps


class JointSteps(PolicySteps, Joints):
    """{joint} is the joint dossier, {part} its first part; {old}, {new} and the other names of joints.RUNS are dossiers,
    {run.old} is the run of one."""

    def place(self, name):
        if name in RUNS:
            return self.folder(name)
        if name.startswith("run.") and name[4:] in RUNS:
            return self.folder(name[4:]).parent
        return {"joint": self.scratch / "joint", "part": self.scratch / "joint/parts/01"}.get(name) or super().place(
            name
        )

    def run_join(self, command, *names, keys="lab"):
        """merge or expand of runs, or of dossiers by their paths, by the buyer who knows these keys."""
        return self.join(command, *names, keys=[name for name in keys.split(",") if name])

    def do_joined(self, command, *names):
        self.joined(command, *names)

    def run_check(self, *words, keys="lab,buyer"):
        """verify of the joint dossier by these keys."""
        return self.check(*words, keys=keys.split(","))

    def run_countersign_joint(self, name, *words):
        return self.countersign(name, *words)

    def do_bent_joint(self, *changes, payload="application/vnd.in-toto+json"):
        """The joint statement after `changes`, signed again by the buyer."""
        self.bent(lambda document: edit(document, *changes), payload_type=payload)

    def do_part_as_signed(self, name):
        """Every file of the run's dossier is in the first part as it was."""
        for path in self.folder(name).rglob("*"):
            if path.is_file():
                self.assertEqual(path.read_bytes(), (self.part / path.relative_to(self.folder(name))).read_bytes())
