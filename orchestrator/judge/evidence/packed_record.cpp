// packed_record: the members of a record in the order in which they are packed.
#include "orchestrator/judge/evidence/packed_record.h"

#include "orchestrator/judge/evidence/packing.h"

namespace assay::judge {

/// The members of a type of the record, in the order of their declarations.
template <class Io, Of<Subject> S>
void members(Io& io, S& subject) {
  io(subject.kind), io(subject.id);
}
template <class Io, Of<Measurement> M>
void members(Io& io, M& one) {
  io(one.metric), io(one.unit), io(one.subject), io(one.at), io(one.samples), io(one.warmup), io(one.stopped);
}
template <class Io, Of<Condition> C>
void members(Io& io, C& one) {
  io(one.name), io(one.subject), io(one.value);
}
template <class Io, Of<TimedRecord> T>
void members(Io& io, T& timed) {
  auto& [record, times] = timed;
  io(times.first), io(times.last);
  io(record.start.probe), io(record.start.revision), io(record.start.parameters), io(record.start.rank);
  io(record.start.world), io(record.start.host);
  io(record.measurements), io(record.conditions), io(record.notes);
  io(record.end.status), io(record.end.reason), io(record.sorted);
}

std::string packed(const TimedRecord& timed) {
  Packer packer;
  packer(timed);
  std::string bytes = packer.take();
  bytes.shrink_to_fit();
  return bytes;
}

TimedRecord unpacked(std::string_view bytes) {
  TimedRecord timed;
  Unpacker{bytes}(timed);
  return timed;
}

}  // namespace assay::judge
