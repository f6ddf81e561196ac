"""What PyTorch is held against: records of the same steps only, and the table that has every yardstick."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hardware"))
sys.dont_write_bytecode = True

import decode_yardstick  # noqa: E402
import first_light_report  # noqa: E402
import train_yardstick  # noqa: E402


class Yardsticks(unittest.TestCase):
    def test_a_step_of_pytorch_is_held_against_a_record_of_the_same_step_only(self):
        given = {"type": "bf16", "data": "gaussian", "model": "llama3-8b", "layers_run": 4}

        def read(start, *lines):
            with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
                file.write("\n".join(json.dumps(one) for one in ({"start": {"parameters": start}}, *lines)))
                file.flush()
                return train_yardstick.read(file.name)

        whole = (
            {"condition": {"name": "ranks", "value": 1}},
            {"measurement": {"metric": "step_time", "samples": [0.5, 0.25, 1.0]}},
            {"end": {"status": "complete"}},
        )
        parameters, found, status = read(given, *whole)
        self.assertEqual(parameters["layers_run"], 4)
        ratio = {"yardstick": "train.ratio", "value": 0.5}
        self.assertEqual(list(train_yardstick.figures(0.25, found, status))[1:], [ratio])
        self.assertEqual(len(list(train_yardstick.figures(0.25, found, "error"))), 1)
        for wrong in ({"type": "tf32"}, {"data": "ring"}, {"model": "llama3-70b"}):
            with self.assertRaisesRegex(ValueError, next(iter(wrong.values()))):
                read({**given, **wrong}, *whole)
        with self.assertRaisesRegex(ValueError, "2 ranks"):
            read(given, {"condition": {"name": "ranks", "value": 2}})

    def test_a_token_of_pytorch_is_held_against_a_record_of_the_same_batches_only(self):
        def read(*lines):
            with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
                file.write("\n".join(json.dumps(one) for one in lines))
                file.flush()
                return decode_yardstick.read(file.name)

        start = {"start": {"parameters": {"engine": "cuda", "model": "llama3-8b", "layers_run": 0}}}
        step = {"measurement": {"metric": "latency", "at": {"batch": 8, "context": 1024}, "samples": [3.0, 1.0, 2.0]}}
        self.assertEqual(read(start, step)[1], {(8, 1024): 2.0})
        for name, value in (("engine", "host"), ("model", "deepseek-v3")):
            with self.assertRaisesRegex(ValueError, value):
                read({"start": {"parameters": {**start["start"]["parameters"], name: value}}}, step)
        with self.assertRaisesRegex(ValueError, "no start"):
            read(step)

    def test_the_summary_has_the_yardsticks_of_every_stage(self):
        with tempfile.TemporaryDirectory() as out:
            records = pathlib.Path(out) / "records"
            records.mkdir()
            lines = {
                "yardstick.out": {"yardstick": "gemm.bf16", "value": 6e14},
                "decode_yardstick.out": {"yardstick": "decode.ratio", "value": 1.25, "batch": 8, "context": 1024},
                "train_yardstick.out": {"yardstick": "train", "error": "no torch"},
            }
            for name, line in lines.items():
                (records / name).write_text(json.dumps(line) + "\n", encoding="utf-8")
            self.assertEqual(
                list(first_light_report.yardsticks(pathlib.Path(out))),
                [
                    ("decode.ratio (batch 8 context 1024)", 1.25, ""),
                    ("train", None, "no torch"),
                    ("gemm.bf16", 6e14, ""),
                ],
            )


if __name__ == "__main__":
    unittest.main()
