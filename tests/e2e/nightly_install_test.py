"""`assay install` and the database of nights: it is on a local disk, or the files are not written."""
import os

from harness import main
from nightly import NightBench


class Places(NightBench):
    def setUp(self):
        super().setUp()
        self.shared, self.units = self.scratch / "shared", self.scratch / "units"
        self.shared.mkdir()
        self.environment.update(LD_PRELOAD=os.environ["NETWORK_DISK"], NETWORK_DISK_AT=str(self.shared))

    def install(self, what, *more, folder=None):
        return self.assay("install", what, "--folder", folder or self.shared, "-o", self.units, *more)

    def test_a_database_on_a_network_file_system_is_refused_with_the_option_that_moves_it(self):
        for what, more in (("timer", []), ("slurm", []), ("cron", ["--history", self.shared / "h.db"])):
            done = self.install(what, *more)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("is on NFS, whose locks and memory maps are not reliable", done.stderr)
            self.assertIn("--history /var/local/assay/history.db", done.stderr)
            self.assertFalse(self.units.exists())

    def test_a_shared_folder_and_a_local_database_are_written_into_the_files(self):
        local = self.scratch / "nights/h.db"
        done = self.install("slurm", "--history", local)
        self.assertEqual(done.returncode, 0, done.stderr)
        script = (self.units / "assay-sweep.sh").read_text()
        self.assertIn(f"mkdir -p {local.parent}; report={self.shared}/drift.json;", script)
        self.assertIn(f"--history {local} ", script)
        self.assertIn(f"drift judge --db {local} -o {self.shared}/drift.json", script)

    def test_a_folder_that_is_not_here_and_a_health_check_need_no_local_disk(self):
        for what, folder in (("slurm", self.shared / "absent"), ("npd", self.shared)):
            self.units = self.scratch / what
            done = self.install(what, folder=folder)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
