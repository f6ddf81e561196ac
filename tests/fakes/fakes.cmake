# fake_nvml carries the name that probes open; a test gives its path, or a link to it beside a state.json.
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
add_library(fake_nvml SHARED fakes/fake_nvml.cpp)
target_link_libraries(fake_nvml PRIVATE assay_flags nlohmann_json::nlohmann_json assay_fmt OpenSSL::Crypto ${CMAKE_DL_LIBS})
set_target_properties(fake_nvml PROPERTIES PREFIX "" OUTPUT_NAME libnvidia-ml SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/nvml)
# Without unique symbols, of libraries in it too, it is unloaded when it is closed, so that one test process can see several nodes.
target_link_options(fake_nvml PRIVATE LINKER:--exclude-libs,ALL)
if(NOT CMAKE_CXX_CLANG_TIDY)  # clang does not know it
  target_compile_options(fake_nvml PRIVATE -fno-gnu-unique)
endif()

# ROCm's library of management, under the name of the version that is read, and an older one.
foreach(number 26 25)
  add_library(fake_amd_smi_${number} SHARED fakes/fake_amd_smi.cpp)
  target_link_libraries(fake_amd_smi_${number} PRIVATE assay_flags nlohmann_json::nlohmann_json)
  set_target_properties(fake_amd_smi_${number} PROPERTIES PREFIX "" OUTPUT_NAME libamd_smi SUFFIX .so.${number}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/amd_${number})
endforeach()

# The HIP runtime and its compiler. The threads of its kernels are fibres, which jump between stacks.
foreach(name amdhip64 hiprtc)
  add_library(fake_${name} SHARED fakes/fake_${name}.cpp)
  target_link_libraries(fake_${name} PRIVATE assay_flags)
  target_compile_options(fake_${name} PRIVATE -O2 -ftls-model=initial-exec -Wno-unknown-pragmas -Wno-clobbered -U_FORTIFY_SOURCE)
  set_target_properties(fake_${name} PROPERTIES PREFIX "" OUTPUT_NAME lib${name} SUFFIX .so.7
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/amdhip)
endforeach()
add_library(fake_rccl SHARED fakes/fake_rccl.cpp)
target_link_libraries(fake_rccl PRIVATE assay_flags fake_amdhip64)
target_compile_options(fake_rccl PRIVATE -O1)
set_target_properties(fake_rccl PROPERTIES PREFIX "" OUTPUT_NAME librccl SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/rccl)

# hipBLASLt, which puts its work into the streams of the made-up runtime.
add_library(fake_hipblaslt SHARED fakes/fake_hipblaslt.cpp)
target_link_libraries(fake_hipblaslt PRIVATE assay_flags fake_amdhip64)
target_compile_options(fake_hipblaslt PRIVATE -O2)
set_target_properties(fake_hipblaslt PROPERTIES PREFIX "" OUTPUT_NAME libhipblaslt SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/amdhip)

# Programs that tests start in the place of others.
add_executable(fake_rank fakes/fake_rank.cpp)
target_link_libraries(fake_rank PRIVATE assay_flags)
add_executable(fake_fio fakes/fake_fio.cpp)
target_link_libraries(fake_fio PRIVATE assay_flags)
set_target_properties(fake_fio PROPERTIES OUTPUT_NAME fio RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/fio)

# A library to open and to miss functions in.
add_library(fake_library SHARED fakes/fake_library.cpp)
target_link_libraries(fake_library PRIVATE assay_flags)
set_target_properties(fake_library PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/library)

# A file system in user space that lies; where it cannot be mounted its tests say so and skip.
find_path(ASSAY_FUSE_INCLUDE fuse3/fuse.h REQUIRED)
find_library(ASSAY_FUSE NAMES fuse3 REQUIRED)
add_executable(lying_fs fakes/lying_fs.cpp)
target_include_directories(lying_fs SYSTEM PRIVATE ${ASSAY_FUSE_INCLUDE} ${ASSAY_FUSE_INCLUDE}/fuse3)
target_compile_definitions(lying_fs PRIVATE _FILE_OFFSET_BITS=64)
target_link_libraries(lying_fs PRIVATE assay_flags ${ASSAY_FUSE})
# A client of NFS for `ctest -C storage`, where libnfs-dev is installed; the client of S3 by itself, beside s3cmd and rclone.
find_library(ASSAY_NFS NAMES nfs)
if(ASSAY_NFS)
  add_executable(nfs_fs fakes/nfs_fs.cpp)
  target_include_directories(nfs_fs SYSTEM PRIVATE ${ASSAY_FUSE_INCLUDE} ${ASSAY_FUSE_INCLUDE}/fuse3)
  target_compile_definitions(nfs_fs PRIVATE _FILE_OFFSET_BITS=64)
  target_link_libraries(nfs_fs PRIVATE assay_flags ${ASSAY_FUSE} ${ASSAY_NFS})
  special(storage nfs_fs)
endif()
add_executable(s3_once fakes/s3_once.cpp)
target_link_libraries(s3_once PRIVATE assay_protocols)
special(storage s3_once)

# add_fake(TARGET NAME FOLDER SOURCE): a library of RDMA or CUDA under the name that the probes open.
function(add_fake target name folder source)
  add_library(${target} SHARED ${source})
  target_compile_options(${target} PRIVATE -O1)
  target_link_libraries(${target} PRIVATE assay_flags ${CMAKE_DL_LIBS})
  target_include_directories(${target} SYSTEM PRIVATE ${ASSAY_VERBS_INCLUDE})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name} SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/${folder})
endfunction()
if(TARGET verbs_bandwidth)
  add_fake(fake_verbs libibverbs verbs fakes/fake_verbs.cpp)
  add_fake(fake_cuda libcuda cuda fakes/fake_cuda.cpp)
  # The same before they knew of dma-buf, and libraries that have none of the functions.
  add_fake(fake_verbs_without_dmabuf libibverbs verbs/no_dmabuf fakes/fake_verbs.cpp)
  add_fake(fake_cuda_without_dmabuf libcuda cuda/no_dmabuf fakes/fake_cuda.cpp)
  target_compile_definitions(fake_verbs_without_dmabuf PRIVATE ASSAY_WITHOUT_DMABUF)
  target_compile_definitions(fake_cuda_without_dmabuf PRIVATE ASSAY_WITHOUT_DMABUF)
  add_fake(old_verbs libibverbs old_verbs fakes/fake_library.cpp)
  add_fake(old_cuda libcuda old_cuda fakes/fake_library.cpp)
endif()

# cuDNN's backend API on the host, a library of its name that has none of the functions, and a driver that cuDNN itself builds plans with.
function(add_cudnn_fake target name suffix source)
  add_library(${target} SHARED ${source})
  target_compile_options(${target} PRIVATE -O1)
  target_link_libraries(${target} PRIVATE assay_flags)
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name} SUFFIX ${suffix}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/${target})
endfunction()
add_cudnn_fake(fake_cudnn libcudnn .so.9 fakes/fake_cudnn.cpp)
add_cudnn_fake(old_cudnn libcudnn .so.9 fakes/fake_library.cpp)
add_cudnn_fake(fake_compiling_driver libcuda .so.1 fakes/fake_compiling_driver.cpp)
