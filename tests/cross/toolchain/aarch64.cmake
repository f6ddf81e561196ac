# Builds for aarch64 Linux with Debian's cross compiler. Libraries that are not the compiler's own lie in ASSAY_SYSROOT, which
# tests/cross/aarch64 fills; what was built runs on this machine under qemu's user-mode emulation.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ASSAY_SYSROOT "$ENV{ASSAY_SYSROOT}" CACHE PATH "Where the aarch64 packages are unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ASSAY_SYSROOT)

set(CMAKE_FIND_ROOT_PATH ${ASSAY_SYSROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# opensslconf.h and its like lie in the folder of their architecture.
set(CMAKE_CXX_FLAGS_INIT "-isystem ${ASSAY_SYSROOT}/usr/include/aarch64-linux-gnu -isystem ${ASSAY_SYSROOT}/usr/include")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${ASSAY_SYSROOT}/usr/lib/aarch64-linux-gnu -Wl,-rpath-link,${ASSAY_SYSROOT}/usr/lib/aarch64-linux-gnu")

find_program(ASSAY_EMULATOR NAMES qemu-aarch64-static qemu-aarch64 REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR
  "${ASSAY_EMULATOR};-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${ASSAY_SYSROOT}/usr/lib/aarch64-linux-gnu:${ASSAY_SYSROOT}/lib/aarch64-linux-gnu")
