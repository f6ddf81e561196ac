// ring_wire: the windows of each collective are made once and kept, so that nothing allocates while a step runs; see
// ring_wire.h.
#include "workloads/train/engine/ring_wire.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "probes/gloo/mesh.h"

namespace assay::train {
namespace {

/// Tags separate concurrent messages between two ranks: gradients from everything else.
std::uint64_t tag_of(const Op& op) {
  if (op.role == Role::gradients) return 1;
  if (op.role == Role::boundary) return op.pass == Pass::forward ? 2 : 3;
  return 4;
}

std::size_t begin_of(std::size_t all, std::size_t shares, std::size_t share) { return share * all / shares; }

}  // namespace

/// One memory that goes round one group.
class RingWire::Exchange {
 public:
  Exchange(gloo::Mesh& mesh, std::vector<std::int64_t> members, std::int64_t rank, std::uint64_t tag,
           std::span<float> data)
      : size_(members.size()),
        place_(static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin())),
        next_(static_cast<int>(members[(place_ + 1) % size_])),
        before_(static_cast<int>(members[(place_ + size_ - 1) % size_])),
        tag_(tag),
        data_(data),
        room_(data.size() / size_ + 1),
        sent_(mesh.window(data.data(), data.size_bytes())),
        received_(mesh.window(room_.data(), room_.size() * sizeof(float))),
        placed_(mesh.window(data.data(), data.size_bytes())) {}

  /// Afterwards each rank has the sum of its own share.
  void scatter_sums() {
    for (std::size_t step = 0; step + 1 < size_; ++step) {
      const Part from = part(place_ + 2 * size_ - step - 1), to = part(place_ + 2 * size_ - step - 2);
      received_.receive(before_, tag_, 0, to.bytes());
      sent_.send(next_, tag_, from.begin * sizeof(float), from.bytes());
      received_.wait_received();
      float* const sum = data_.data() + to.begin;
      for (std::size_t i = 0; i < to.count; ++i) sum[i] += room_[i];
      sent_.wait_sent();
    }
  }
  /// Afterwards each rank has every rank's share.
  void gather() {
    for (std::size_t step = 0; step + 1 < size_; ++step) {
      const Part from = part(place_ + size_ - step), to = part(place_ + 2 * size_ - step - 1);
      placed_.receive(before_, tag_, to.begin * sizeof(float), to.bytes());
      sent_.send(next_, tag_, from.begin * sizeof(float), from.bytes());
      placed_.wait_received();
      sent_.wait_sent();
    }
  }

 private:
  struct Part {
    std::size_t begin, count;
    [[nodiscard]] std::size_t bytes() const { return count * sizeof(float); }
  };
  [[nodiscard]] Part part(std::size_t share) const {
    const std::size_t begin = begin_of(data_.size(), size_, share % size_);
    return {.begin = begin, .count = begin_of(data_.size(), size_, share % size_ + 1) - begin};
  }

  std::size_t size_, place_;
  int next_, before_;
  std::uint64_t tag_;
  std::span<float> data_;
  std::vector<float> room_;  ///< a share of the rank before
  gloo::Window sent_, received_, placed_;
};

/// Messages to all others of a group, and from them, out of one memory into another.
class RingWire::Spread {
 public:
  Spread(gloo::Mesh& mesh, std::vector<std::int64_t> members, std::int64_t rank, std::uint64_t tag,
         const Transfer& transfer)
      : members_(std::move(members)),
        place_(static_cast<std::size_t>(std::ranges::find(members_, rank) - members_.begin())),
        tag_(tag),
        sent_(mesh.window(transfer.sent.data(), transfer.sent.size_bytes())),
        received_(mesh.window(transfer.data.data(), transfer.data.size_bytes())) {}

  void run(const Transfer& transfer) {
    const std::size_t size = members_.size();
    for (std::size_t step = 0; step < size; ++step) {
      const std::size_t to = (place_ + step) % size, from = (place_ + size - step) % size;
      const Part out = part(transfer.to, to), in = part(transfer.from, from);
      if (step == 0) {
        std::copy_n(transfer.sent.begin() + static_cast<std::ptrdiff_t>(out.begin), out.count,
                    transfer.data.begin() + static_cast<std::ptrdiff_t>(in.begin));
        continue;
      }
      if (in.count > 0)
        received_.receive(static_cast<int>(members_[from]), tag_, in.begin * sizeof(float), in.count * sizeof(float));
      if (out.count > 0)
        sent_.send(static_cast<int>(members_[to]), tag_, out.begin * sizeof(float), out.count * sizeof(float));
      if (in.count > 0) received_.wait_received();
      if (out.count > 0) sent_.wait_sent();
    }
  }

 private:
  struct Part {
    std::size_t begin, count;
  };
  static Part part(const std::vector<std::size_t>& counts, std::size_t of) {
    return {.begin = std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(of), std::size_t{0}),
            .count = counts[of]};
  }

  std::vector<std::int64_t> members_;
  std::size_t place_;
  std::uint64_t tag_;
  gloo::Window sent_, received_;
};

/// Messages of one kind to, or from, one rank of the pipeline.
class RingWire::Post {
 public:
  /// `most` numbers of one message; `rooms` messages are on their way before a sender waits.
  Post(gloo::Mesh& mesh, const Op& op, std::size_t most, std::size_t rooms)
      : peer_(static_cast<int>(op.peer)), tag_(tag_of(op)), rooms_(rooms, std::vector<float>(most)), used_(rooms) {
    for (auto& room : rooms_) windows_.push_back(mesh.window(room.data(), room.size() * sizeof(float)));
  }

  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;
  /// Waits until the last messages are on their way: Gloo drops unsent messages when their memory is freed.
  ~Post() {
    for (std::size_t room = 0; room < rooms_.size(); ++room) {
      try {
        if (used_[room]) windows_[room].wait_sent();
      } catch (const std::exception&) {
        return;  // the other rank is gone, and the rank that waits for it reports that
      }
    }
  }

  void send(std::span<const float> data) {
    const std::size_t room = turn();
    if (used_[room]) windows_[room].wait_sent();
    std::ranges::copy(data, rooms_[room].begin());
    windows_[room].send(peer_, tag_, 0, data.size_bytes());
    used_[room] = true;
  }
  void receive(std::span<float> data) {
    const std::size_t room = turn();
    windows_[room].receive(peer_, tag_, 0, data.size_bytes());
    windows_[room].wait_received();
    std::copy_n(rooms_[room].begin(), data.size(), data.begin());
  }

 private:
  std::size_t turn() { return turn_++ % rooms_.size(); }

  int peer_;
  std::uint64_t tag_;
  std::vector<std::vector<float>> rooms_;
  std::vector<gloo::Window> windows_;
  std::vector<bool> used_;
  std::size_t turn_ = 0;
};

RingWire::RingWire(gloo::Mesh& mesh, const ParallelPlan& plan, std::int64_t rank, const std::vector<Op>& ops,
                   const std::vector<Transfer>& transfers)
    : by_op_(ops.size()),
      post_by_op_(ops.size()),
      spread_by_op_(ops.size()),
      transfers_(ops.size()),
      motions_(ops.size()) {
  std::map<std::tuple<Group, std::uint64_t, float*>, Exchange*> exchanges;  // one memory, one ring
  std::map<std::tuple<Motion, Pass>, Post*> posts;
  // Interleaved stages run ahead by this many pieces; without them a rank is one message ahead of its neighbour.
  const std::size_t rooms = plan.virtual_stages == 1 ? 2 : sized(2 * plan.pp * plan.virtual_stages);
  for (const Transfer& transfer : transfers) {
    const Op& op = ops[transfer.op];
    transfers_[transfer.op] = transfer;
    motions_[transfer.op] = op.motion;
    if (op.group == Group::pp) {
      Post*& post = posts[{op.motion, op.pass}];
      if (post == nullptr)
        post = posts_.emplace_back(std::make_unique<Post>(mesh, op, transfer.data.size(), rooms)).get();
      post_by_op_[transfer.op] = post;
    } else if (op.motion == Motion::all_to_all) {
      // Counts differ between layers and micro-batches, and so do the used sizes of a memory.
      spread_by_op_[transfer.op] = spreads_
                                       .emplace_back(std::make_unique<Spread>(mesh, members_of(plan, op.group, rank),
                                                                              rank, tag_of(op), transfer))
                                       .get();
    } else {
      Exchange*& exchange = exchanges[{op.group, tag_of(op), transfer.data.data()}];
      if (exchange == nullptr)
        exchange = exchanges_
                       .emplace_back(std::make_unique<Exchange>(mesh, members_of(plan, op.group, rank), rank,
                                                                tag_of(op), transfer.data))
                       .get();
      by_op_[transfer.op] = exchange;
    }
  }
}

RingWire::~RingWire() = default;

void RingWire::carry(std::size_t op) {
  switch (motions_[op]) {
    case Motion::send:
      return post_by_op_[op]->send(transfers_[op].data);
    case Motion::receive:
      return post_by_op_[op]->receive(transfers_[op].data);
    case Motion::all_reduce:
      by_op_[op]->scatter_sums();
      return by_op_[op]->gather();
    case Motion::reduce_scatter:
    case Motion::exchange_sums:
      return by_op_[op]->scatter_sums();
    case Motion::all_gather:
    case Motion::exchange:
      return by_op_[op]->gather();
    case Motion::all_to_all:
      return spread_by_op_[op]->run(transfers_[op]);
    case Motion::none:
      break;
  }
  throw std::logic_error("an operation that is no collective is not for the wire");
}

}  // namespace assay::train
