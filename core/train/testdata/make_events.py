"""Makes the event files beside it with the writers of tensorboard and tensorboardX, and what tensorboard reads in them.

    pip install tensorboard tensorboardX && python make_events.py
"""

import json
import os
import shutil
import struct

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2
from tensorboard.plugins.scalar import metadata
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboardX import SummaryWriter

HERE = os.path.dirname(os.path.abspath(__file__))


def simple(tag, step, value):
    summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)])
    return event_pb2.Event(wall_time=1000.0 + step, step=step, summary=summary)


def tensor(tag, step, proto):
    value = summary_pb2.Summary.Value(tag=tag, tensor=proto, metadata=metadata.create_summary_metadata("", ""))
    return event_pb2.Event(wall_time=1000.0 + step, step=step, summary=summary_pb2.Summary(value=[value]))


def written(name, events):
    """The file that tensorboard's own writer makes of the events."""
    folder = os.path.join(HERE, "tmp")
    writer = EventFileWriter(folder)
    for event in events:
        writer.add_event(event)
    writer.close()
    (file,) = os.listdir(folder)
    shutil.move(os.path.join(folder, file), os.path.join(HERE, name))
    shutil.rmtree(folder)


def start(step):
    return event_pb2.Event(wall_time=1.0, step=step,
                           session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))


losses = [10.8642101, 10.8563995, 1.0 / 3, 0.000005, 2.5e-6, 61232738304.0, float("nan"), float("inf")]
written("simple.tfevents", [simple("lm loss", i + 1, v) for i, v in enumerate(losses)] +
        [simple("num-zeros", 2 * i, float(i)) for i in range(1, 4)] + [simple("lm loss", 3, 7.0)])
written("empty.tfevents", [])
written("restarted.tfevents", [simple("lm loss", i, float(i)) for i in range(1, 6)] + [start(3)] +
        [simple("lm loss", i, 10.0 * i) for i in range(3, 5)])
TYPES = [(1, dict(float_val=[1.5])), (2, dict(double_val=[0.1])), (3, dict(int_val=[-7])), (9, dict(int64_val=[1 << 40])),
         (10, dict(bool_val=[True])), (14, dict(half_val=[0x3FC0])), (19, dict(half_val=[0x3E00])),
         (1, dict(tensor_content=struct.pack("<f", 2.25))), (2, dict(tensor_content=struct.pack("<d", -0.5))), (1, {}),
         (23, dict(uint64_val=[5]))]
written("tensors.tfevents", [tensor("a", i + 1, tensor_pb2.TensorProto(dtype=t, **v)) for i, (t, v) in enumerate(TYPES)] +
        [tensor("text", 1, tensor_pb2.TensorProto(dtype=7, string_val=[b"x"]))])

folder = os.path.join(HERE, "tmp")
with SummaryWriter(folder) as writer:
    for i in range(1, 13):
        writer.add_scalar("lm loss", 11.0 - i / 7, i)
        writer.add_scalar("iteration-time", 0.25 + 1.0 / i, i)
        writer.add_scalar("unrelated", i, i)
(name,) = os.listdir(folder)
shutil.move(os.path.join(folder, name), os.path.join(HERE, "tensorboardx.tfevents"))
shutil.rmtree(folder)

expected = {}
for name in sorted(os.listdir(HERE)):
    if not name.endswith(".tfevents"):
        continue
    accumulator = event_accumulator.EventAccumulator(
        os.path.join(HERE, name), size_guidance={event_accumulator.TENSORS: 0, event_accumulator.SCALARS: 0})
    accumulator.Reload()
    expected[name] = {tag: [[e.step, repr(e.value), repr(round(e.value, 5))] for e in accumulator.Scalars(tag)]
                      for tag in accumulator.Tags()["scalars"]}
with open(os.path.join(HERE, "expected.json"), "w", encoding="ascii") as out:
    json.dump(expected, out, indent=1)
    out.write("\n")
