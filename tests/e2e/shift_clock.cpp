// shift_clock: preloaded into a program, moves its wall clock by SHIFT_CLOCK_S seconds; for authorities and signers of
// another day.
#include <cstdlib>
#include <ctime>

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

long shift() {
  const char* text = std::getenv("SHIFT_CLOCK_S");
  return text == nullptr ? 0 : std::atol(text);
}

timespec shifted() {
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  now.tv_sec += shift();
  return now;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  if (clock != CLOCK_REALTIME) return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  *out = shifted();
  return 0;
}

extern "C" int gettimeofday(timeval* out, void*) noexcept {
  const timespec now = shifted();
  *out = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

extern "C" time_t time(time_t* out) noexcept {
  const time_t now = shifted().tv_sec;
  if (out != nullptr) *out = now;
  return now;
}
