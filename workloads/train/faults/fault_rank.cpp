// fault_resume_rank: one rank, or a spare, of fault_resume. It answers one request at a time (the list is in
// fault_crew.cpp): it trains, saves, fails on request, and restores. A second thread, the heartbeat's, beats meanwhile
// and shuts the connections when the leader gives the group up.
#include <bit>
#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "probes/collective/heartbeat.h"
#include "probes/gloo/connections.h"
#include "probes/gloo/rank_mesh.h"
#include "workloads/train/engine/step_math.h"
#include "workloads/train/faults/fault_plan.h"
#include "workloads/train/faults/kept_states.h"
#include "workloads/train/step/rank_setup.h"

namespace assay::train {
namespace {

using nlohmann::json;

constexpr std::uint64_t kStateTag = 9;  // apart from those of ring_wire
constexpr int kSlowness = 8;            // of a slow rank: it takes so many times as long to compute

/// The state of one rank between requests.
class FaultSession {
 public:
  explicit FaultSession(const RankStart& start)
      : job_(start.job),
        address_(start.address),
        folder_(start.board.value().folder),
        board_(start.board->descriptor, start.board->ranks),
        page_(board_.page(start.board->own)),
        heart_(page_, start.address, {start.board->period_s}, [this] { give_up(); }) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return {{"free", gloo::available_memory()}};
    if (what == "be") return be(request);
    if (what == "introduce") return introduce();
    if (what == "enter") return enter(request);
    if (what == "leave") return leave();
    if (what == "run") return run(request);
    if (what == "save") return save(request);
    if (what == "restore") return restore(request);
    if (what == "lend") return lend(request);
    if (what == "spoil") return spoil(request);
    if (what == "facts") return gloo::RankMesh::facts("own_ring");
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

 private:
  /// In the thread of the heartbeat while the rank belongs to a group, or in its own afterwards: nothing waits any
  /// longer.
  void give_up() {
    gloo::shut_own_connections();
    mesh().give_up();
  }
  [[nodiscard]] std::int64_t ranks() const { return job_.plan.world(); }
  gloo::Mesh& mesh() { return mesh_.value().mesh(); }

  /// Takes the place of a rank, with the weights of step 0.
  json be(const json& request) {
    job_.rank = request.at("rank");
    states_.emplace(folder_, request.at("shared").get<std::string>());
    rig_.emplace(job_);
    return {{"count", count()}, {"ops", rig_->engine().ops().size()}};
  }

  std::size_t count() {
    std::size_t all = 0;
    for (const auto part : rig_->engine().kept()) all += part.size();
    return all;
  }

  json introduce() {
    mesh_.emplace(address_, static_cast<int>(job_.rank), static_cast<int>(ranks()));
    json answer = mesh_->introduce();
    answer["beat"] = {address_, heart_.port()};
    return answer;
  }

  json enter(const json& request) {
    json answer = mesh_->enter(request.at("words"));
    rig_->connect(mesh());
    std::vector<collective::BeatPlace> places;
    for (const auto& place : request.at("beats")) places.push_back({.address = place.at(0), .port = place.at(1)});
    heart_.join(request.at("group"), request.at("key"), static_cast<std::size_t>(job_.rank), places);
    before_count_ = request.at("before_count");
    return answer;
  }

  /// Discards everything of the group. A rank that notices a loss by its connections is here before the heartbeat has
  /// seen that its group is over, and would wait for messages that it has sent.
  json leave() {
    heart_.leave();
    if (mesh_) give_up();
    if (rig_) rig_->disconnect();
    mesh_.reset();
    return json::object();
  }

  json run(const json& request) {
    HostEngine& engine = rig_->engine();
    const auto fault = fault_in(request);
    const auto at = fault ? op_of(fault->phase, engine.ops()) : std::nullopt;
    slow_ = false;
    page_.struck_ns = 0;
    std::vector<double> wall;
    const auto to = request.at("to").get<std::int64_t>();
    for (auto step = request.at("from").get<std::int64_t>(); step < to; ++step) {
      engine.watch([&](std::size_t op) {
        if (slow_) lag(op);
        if (fault && fault->step == step && op == at) strike(fault->kind);
      });
      wall.push_back(engine.step(Variant::full, static_cast<std::uint64_t>(step)).wall_s);
      page_.place = step + 1;
    }
    return {{"wall", wall}, {"struck", page_.struck_ns != 0}};
  }

  static std::optional<FaultCase> fault_in(const json& request) {
    const auto found = request.find("fault");
    if (found == request.end()) return std::nullopt;
    return FaultCase{.kind = static_cast<FaultKind>(found->at(0).get<int>()),
                     .phase = static_cast<StepPhase>(found->at(1).get<int>()),
                     .step = found->at(2),
                     .rank = 0};
  }

  void strike(FaultKind kind) {
    page_.struck_ns = collective::monotonic_ns();
    switch (kind) {
      case FaultKind::kill:
        (void)std::raise(SIGKILL);  // does not return
        return;
      case FaultKind::hang:
        (void)std::raise(SIGSTOP);  // all threads; nothing continues them
        return;
      case FaultKind::cut:
        return gloo::cut_own_sockets();
      case FaultKind::slow:
        slow_ = true;
        worked_from_ = std::chrono::steady_clock::now();
    }
  }

  /// After an operation that computed: works as long again as makes it slow.
  void lag(std::size_t op) {
    if (op > 0 && rig_->engine().ops()[op - 1].kind != OpKind::collective) {
      const auto took = std::chrono::steady_clock::now() - worked_from_;
      const auto until = std::chrono::steady_clock::now() + took * (kSlowness - 1);
      while (std::chrono::steady_clock::now() < until) {
      }
    }
    worked_from_ = std::chrono::steady_clock::now();
  }

  /// Own memory, a file on the node, the memory of the rank after this one, a shared file.
  json save(const json& request) {
    const auto step = request.at("step").get<std::int64_t>(), before = request.at("before").get<std::int64_t>();
    const auto begin = std::chrono::steady_clock::now();
    const KeptState& own = states_->take(job_.rank, step, rig_->engine().kept());
    if (states_->has(Tier::local)) states_->write(Tier::local, job_.rank, step);
    if (const auto fault = fault_in(request)) strike(fault->kind);
    pass_on(step, own);
    if (states_->has(Tier::shared)) states_->write(Tier::shared, job_.rank, step);
    states_->keep_only(job_.rank, step, before);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return {{"print", own.print}, {"took", took.count()}};
  }

  void pass_on(std::int64_t step, const KeptState& own) {
    const auto before = (job_.rank + ranks() - 1) % ranks(), next = (job_.rank + 1) % ranks();
    KeptState& theirs = states_->room(before, step, before_count_);
    std::vector<float> sent = own.values;
    gloo::Window out = mesh().window(sent.data(), sent.size() * sizeof(float));
    gloo::Window in = mesh().window(theirs.values.data(), theirs.values.size() * sizeof(float));
    in.receive(static_cast<int>(before), kStateTag, 0, theirs.values.size() * sizeof(float));
    out.send(static_cast<int>(next), kStateTag, 0, sent.size() * sizeof(float));
    in.wait_received();
    out.wait_sent();
  }

  /// The state after "step", from "tier"; used only if its print is the one from its save.
  json restore(const json& request) {
    const auto step = request.at("step").get<std::int64_t>();
    const auto tier = static_cast<Tier>(request.at("tier").get<int>());
    const auto print = request.at("print").get<std::uint64_t>();
    std::optional<KeptState> found;
    if (tier == Tier::own) {
      if (const KeptState* kept = states_->find(job_.rank, step)) found = *kept;
    } else if (tier == Tier::memory) {
      found = borrow(request.at("from").get<int>());
    } else if (states_->has(tier)) {
      found = states_->read(tier, job_.rank, step, count());
    }
    if (!found || found->values.size() != count() || print_of(found->values) != print)
      return {{"refused", !found ? "is not there" : "is not what was saved"}};
    put_back(found->values, rig_->engine().kept());
    (void)states_->take(job_.rank, step, rig_->engine().kept());
    page_.place = step;
    return json::object();
  }

  KeptState borrow(int from) {
    KeptState kept{.print = 0, .values = std::vector<float>(count())};
    gloo::Window in = mesh().window(kept.values.data(), kept.values.size() * sizeof(float));
    in.receive(from, kStateTag, 0, kept.values.size() * sizeof(float));
    in.wait_received();
    return kept;
  }

  /// Sends the previous rank its kept state; a missing state is sent as zeros and refused there.
  json lend(const json& request) {
    const auto to = request.at("to").get<std::int64_t>();
    const KeptState* kept = states_->find(to, request.at("step"));
    std::vector<float> values = kept != nullptr ? kept->values : std::vector<float>(before_count_, 0);
    gloo::Window out = mesh().window(values.data(), values.size() * sizeof(float));
    out.send(static_cast<int>(to), kStateTag, 0, values.size() * sizeof(float));
    out.wait_sent();
    return json::object();
  }

  /// Turns one bit of a copy of the state of rank "of", to show that it is found.
  json spoil(const json& request) {
    const auto of = request.at("of").get<std::int64_t>(), step = request.at("step").get<std::int64_t>();
    const auto tier = static_cast<Tier>(request.at("tier").get<int>());
    if (tier == Tier::memory) {
      KeptState* kept = states_->find(of, step);
      if (kept == nullptr) return json::object();  // there is nothing that could be restored
      std::uint32_t bits = std::bit_cast<std::uint32_t>(kept->values.at(0)) ^ 1U;
      kept->values[0] = std::bit_cast<float>(bits);
      return json::object();
    }
    std::fstream file(states_->path(tier, of, step), std::ios::binary | std::ios::in | std::ios::out);
    char byte = 0;
    if (file.get(byte) && file.seekp(0) && file.put(static_cast<char>(byte ^ 1))) return json::object();
    throw std::runtime_error("a file of a state cannot be spoiled: " + states_->path(tier, of, step));
  }

  RankJob job_;
  std::string address_, folder_;
  collective::RankBoard board_;
  collective::RankPage& page_;
  std::optional<gloo::RankMesh> mesh_;  // before the rig, which has windows on it
  std::optional<KeptStates> states_;
  std::optional<RankSetup> rig_;
  std::size_t before_count_ = 0;  ///< numbers in the state of the rank before
  bool slow_ = false;
  std::chrono::steady_clock::time_point worked_from_;  ///< of a slow rank: the begin of its last operation
  collective::Heartbeat heart_;                        // last: its thread looks at all of these
};

}  // namespace
}  // namespace assay::train

int main(int argc, char** argv) {
  return assay::train::rank_main<assay::train::FaultSession>(argc, argv, "fault_resume_rank", "fault_resume");
}
