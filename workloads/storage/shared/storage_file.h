// storage_file: plain calls on files of a storage, each of which may be refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/core/descriptor.h"

namespace assay::cluster_storage {

/// Opens with open(2)'s `flags`; a new file is readable only by its owner. These throw std::system_error with the call
/// and the path when the storage refuses.
Descriptor open_on_storage(const std::string& path, int flags);

/// Writes all of it at `offset`, or at the end where the file is open with O_APPEND.
void write_on_storage(const Descriptor& file, std::span<const std::byte> bytes, std::uint64_t offset,
                      const std::string& path);

/// fsync, by a raw system call that no preloaded library makes idle.
void sync_on_storage(const Descriptor& file, const std::string& path);

/// The same and close, whose refusal counts: storages that
/// write late refuse there.
void sync_and_close(Descriptor file, const std::string& path);

/// The whole file from its beginning, 1 GiB at most.
std::vector<std::byte> read_on_storage(const Descriptor& file, const std::string& path);

/// The whole file by its name; nothing if there is none.
std::optional<std::vector<std::byte>> content_on_storage(const std::string& path);

/// Opens with `flags`, writes all of it from the beginning or the end, fsync, close.
void write_durably(const std::string& path, int flags, std::span<const std::byte> bytes);

/// Whether this call made the file: O_EXCL says that it is new.
bool make_alone(const std::string& path);

/// rename, mkdir, unlink, ftruncate, and the size by lstat.
void rename_on_storage(const std::string& from, const std::string& to);
void mkdir_on_storage(const std::string& path);
void unlink_on_storage(const std::string& path);
void resize_on_storage(const Descriptor& file, std::uint64_t size, const std::string& path);
std::uint64_t size_on_storage(const std::string& path);

/// Names in a directory, "." and ".." not among them.
std::vector<std::string> names_on_storage(const std::string& path);

}  // namespace assay::cluster_storage
