// link_modes: the kernel numbers link modes and does not say their rates; the table follows
// include/uapi/linux/ethtool.h.
#include "probes/core/link_modes.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "probes/core/descriptor.h"

namespace assay {
namespace {

constexpr double kMegabit = 1e6 / 8;  // B

/// Modes of one rate whose bits follow each other.
struct Modes {
  unsigned first, last;
  double megabits;
};

constexpr Modes kModes[] = {
    {0, 1, 10},        {2, 3, 100},         {4, 5, 1'000},       {12, 12, 10'000},    {15, 15, 2'500},
    {17, 17, 1'000},   {18, 20, 10'000},    {21, 22, 20'000},    {23, 26, 40'000},    {27, 30, 56'000},
    {31, 33, 25'000},  {34, 35, 50'000},    {36, 39, 100'000},   {40, 40, 50'000},    {41, 41, 1'000},
    {42, 46, 10'000},  {47, 47, 2'500},     {48, 48, 5'000},     {52, 56, 50'000},    {57, 61, 100'000},
    {62, 66, 200'000}, {67, 67, 100},       {68, 68, 1'000},     {69, 73, 400'000},   {75, 79, 100'000},
    {80, 84, 200'000}, {85, 89, 400'000},   {90, 91, 100},       {92, 92, 10},        {93, 98, 800'000},
    {99, 102, 10},     {103, 108, 200'000}, {109, 114, 400'000}, {115, 120, 800'000},
};

}  // namespace

std::optional<BytesPerSecond> fastest_mode(std::span<const std::uint32_t> modes) {
  constexpr unsigned kBits = 32;
  double fastest = 0;
  for (const Modes& known : kModes) {
    for (unsigned bit = known.first; bit <= known.last; ++bit) {
      if (bit / kBits < modes.size() && (modes[bit / kBits] >> (bit % kBits) & 1U) != 0)
        fastest = std::max(fastest, known.megabits);
    }
  }
  if (fastest == 0) return std::nullopt;
  return BytesPerSecond{fastest * kMegabit};
}

std::optional<BytesPerSecond> fastest_mode_of(const std::string& interface) {
  if (interface.empty() || interface.size() >= IFNAMSIZ) return std::nullopt;
  const Descriptor control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));  // for the ioctl only
  if (!control) return std::nullopt;
  // The settings are followed by three bitmaps of as many words as the kernel says when asked with none.
  constexpr std::size_t kMostWords = 127;
  std::vector<std::uint32_t> answer((sizeof(ethtool_link_settings) + 3) / 4 + 3 * kMostWords);
  ethtool_link_settings settings = {};
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  ifreq request = {};
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  request.ifr_data = reinterpret_cast<char*>(answer.data());
  // Through a pointer: it ends in an array without a length, which clang does not let a lambda capture.
  const auto ask = [&answer, &control, &request, told = &settings] {
    std::memcpy(answer.data(), told, sizeof *told);
    if (ioctl(control.number(), SIOCETHTOOL, &request) != 0) return false;
    std::memcpy(told, answer.data(), sizeof *told);
    return true;
  };
  if (!ask() || settings.link_mode_masks_nwords >= 0) return std::nullopt;
  settings.link_mode_masks_nwords = static_cast<std::int8_t>(-settings.link_mode_masks_nwords);
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  if (!ask() || settings.link_mode_masks_nwords <= 0) return std::nullopt;
  const auto words = static_cast<std::size_t>(static_cast<unsigned char>(settings.link_mode_masks_nwords));
  return fastest_mode(std::span(answer).subspan(sizeof(ethtool_link_settings) / 4, words));
}

}  // namespace assay
