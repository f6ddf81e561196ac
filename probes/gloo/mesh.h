// mesh: one rank of a Gloo context over TCP, connected to every other, and the collectives on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "probes/collective/operation.h"

namespace assay::gloo {

/// How `operation` is done: Gloo's own function and its algorithm if this version of Gloo has one; a missing one is
/// made of its point-to-point messages here. One word, "gloo_ring" or "own_ring".
std::string_view algorithm_of(collective::Operation operation);

/// Memory from which single messages are sent to, or into which they are received from, other ranks of a mesh. One
/// message each way may be under way at a time. It is gone before its mesh is.
class Window {
 public:
  struct Registration;
  struct Waits;
  explicit Window(std::unique_ptr<Registration> registration);
  Window(Window&&) noexcept;
  ~Window();
  /// Starts to send `bytes` from `offset` on to `rank`; the messages of one `tag` between two ranks arrive in order.
  void send(int rank, std::uint64_t tag, std::size_t offset, std::size_t bytes);
  /// Starts to receive; as many bytes as are sent.
  void receive(int rank, std::uint64_t tag, std::size_t offset, std::size_t bytes);
  /// Returns when the memory of the last message may be used again, or is filled. Throws after the limit of a batch,
  /// and when the mesh is given up.
  void wait_sent();
  void wait_received();

 private:
  std::unique_ptr<Registration> registration_;
};

/// One rank's connections. Every call but the constructor is made by all ranks in the same order, and throws what Gloo
/// throws when a peer is gone or a wait is over its limit.
class Mesh {
 public:
  /// Listens for every other rank at `address`, which is numeric. Throws when no network port has it.
  Mesh(const std::string& address, int rank, int ranks);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  /// Where each other rank finds this one, in order of ranks, as bytes that only Gloo reads.
  [[nodiscard]] std::vector<std::string> ends() const;
  /// Connects to every other rank. `theirs` are their ends towards this rank, in order of ranks.
  void connect(const std::vector<std::string>& theirs);
  /// Returns when all ranks have called it.
  void barrier();
  /// Runs `operation` on `chunk` elements (Shape::chunk), out of place; returns when this rank's part is done and its
  /// buffers may be used again. Only fp32 and fp64.
  void run(collective::Operation operation, collective::Element element, std::size_t chunk, const std::byte* source,
           std::byte* target);
  /// A window on `bytes` at `memory`, which outlives it.
  Window window(void* memory, std::size_t bytes);
  /// Ends all waiting for messages of windows, now and later: it throws. From any thread.
  void give_up();

 private:
  class Context;
  std::shared_ptr<Context> context_;
  std::shared_ptr<Window::Waits> waits_;
};

/// The file that Gloo was loaded from.
std::string gloo_library();

}  // namespace assay::gloo
