// adapter_state: internal to the files that call libibverbs.
#pragma once

#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <infiniband/verbs.h>

#include "probes/core/library.h"
#include "probes/cuda/gpu_memory.h"
#include "probes/verbs/adapter.h"

namespace assay::verbs {

/// The functions of libibverbs. Posting and polling go through the device's context and need none.
struct VerbsFunctions {
  Library library = Library::open("libibverbs.so.1", "libibverbs (rdma-core)");
  decltype(&::ibv_get_device_list) get_device_list = library.function("ibv_get_device_list");
  decltype(&::ibv_free_device_list) free_device_list = library.function("ibv_free_device_list");
  decltype(&::ibv_get_device_name) get_device_name = library.function("ibv_get_device_name");
  decltype(&::ibv_open_device) open_device = library.function("ibv_open_device");
  decltype(&::ibv_close_device) close_device = library.function("ibv_close_device");
  decltype(&::ibv_query_device) query_device = library.function("ibv_query_device");
  decltype(&::ibv_query_port) query_port = library.function("ibv_query_port");
  decltype(&::ibv_alloc_pd) alloc_pd = library.function("ibv_alloc_pd");
  decltype(&::ibv_dealloc_pd) dealloc_pd = library.function("ibv_dealloc_pd");
  decltype(&::ibv_reg_mr) reg_mr = library.function("ibv_reg_mr");
  decltype(&::ibv_dereg_mr) dereg_mr = library.function("ibv_dereg_mr");
  decltype(&::ibv_create_cq) create_cq = library.function("ibv_create_cq");
  decltype(&::ibv_destroy_cq) destroy_cq = library.function("ibv_destroy_cq");
  decltype(&::ibv_create_qp) create_qp = library.function("ibv_create_qp");
  decltype(&::ibv_modify_qp) modify_qp = library.function("ibv_modify_qp");
  decltype(&::ibv_destroy_qp) destroy_qp = library.function("ibv_destroy_qp");
  decltype(&::ibv_wc_status_str) wc_status_str = library.function("ibv_wc_status_str");
  /// Since rdma-core 27; passes optional access flags on. Null in an older library: it has only strict ordering.
  decltype(&::ibv_reg_mr_iova2) reg_mr_iova2 = library.optional_function("ibv_reg_mr_iova2");
  /// Since rdma-core 34; null in an older library.
  decltype(&::ibv_reg_dmabuf_mr) reg_dmabuf_mr = library.optional_function("ibv_reg_dmabuf_mr");
};

/// Frees a handle of libibverbs by the function that the library gave for it.
template <class Handle>
struct VerbsDeleter {
  int (*function)(Handle*) = nullptr;
  void operator()(Handle* handle) const {
    (void)function(handle);
  }  // at the end of the process nothing can be done about it
};
template <class Handle>
using VerbsHandle = std::unique_ptr<Handle, VerbsDeleter<Handle>>;

/// Takes a handle that the call `what` returned; null throws std::runtime_error with errno's words.
template <class Handle>
VerbsHandle<Handle> owned(Handle* handle, int (*free)(Handle*), std::string_view what);

/// Throws VerbsError "what: words of code" when a call returned `code` other than 0.
void demand_verbs(int code, std::string_view what);

struct Adapter::State {
  VerbsFunctions verbs;
  PortFacts port;
  AdapterLimits limits;
  VerbsHandle<ibv_context> context;
  VerbsHandle<ibv_pd> domain;
};

/// Page-aligned memory of its own mapping.
class Mapping {
 public:
  explicit Mapping(std::size_t size);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

struct RegisteredMemory::State {
  std::optional<Mapping> mapping;      ///< of the host, or
  std::span<std::byte> lent;           ///< of the host, of another owner, or
  std::optional<cuda::GpuMemory> gpu;  ///< of a GPU; with a mapping, through which it is staged
  VerbsHandle<ibv_mr> region;          ///< after the memory: it is given back before it
  std::uint64_t address = 0;
  bool relaxed = false;
  Registration registration = Registration::host;
  std::string dma_buf_refused;
};

template <class Handle>
VerbsHandle<Handle> owned(Handle* handle, int (*free)(Handle*), std::string_view what) {
  if (handle == nullptr) demand_verbs(errno == 0 ? EIO : errno, what);
  return VerbsHandle<Handle>(handle, VerbsDeleter<Handle>{free});
}

}  // namespace assay::verbs
