// fake_compiling_driver: a driver without a GPU that takes every kernel, so that cuDNN builds plans for a device that
// is described in words. The functions are those that cuDNN 9.19.0 looks for; nothing runs.
extern "C" {

static int taken() { return 0; }
static int no_device() { return 100; }  // CUDA_ERROR_NO_DEVICE
static int given(void** to) {
  static int something = 0;
  *to = &something;
  return 0;
}

int cuInit() __attribute__((alias("no_device")));
int cuDeviceGetCount() __attribute__((alias("no_device")));
int cuLibraryLoadData(void** to) __attribute__((alias("given")));
int cuLibraryGetKernel(void** to) __attribute__((alias("given")));
int cuModuleLoadData(void** to) __attribute__((alias("given")));
int cuModuleLoadDataEx(void** to) __attribute__((alias("given")));
int cuModuleLoadFatBinary(void** to) __attribute__((alias("given")));
int cuModuleGetFunction(void** to) __attribute__((alias("given")));
int cuCtxGetCurrent() __attribute__((alias("taken")));
int cuCtxGetDevice() __attribute__((alias("taken")));
int cuCtxGetLimit() __attribute__((alias("taken")));
int cuCtxPopCurrent() __attribute__((alias("taken")));
int cuCtxPushCurrent() __attribute__((alias("taken")));
int cuDeviceGet() __attribute__((alias("taken")));
int cuDeviceGetAttribute() __attribute__((alias("taken")));
int cuDevicePrimaryCtxRelease() __attribute__((alias("taken")));
int cuDevicePrimaryCtxReset() __attribute__((alias("taken")));
int cuDevicePrimaryCtxRetain() __attribute__((alias("taken")));
int cuDriverGetVersion() __attribute__((alias("taken")));
int cuFuncGetAttribute() __attribute__((alias("taken")));
int cuFuncSetAttribute() __attribute__((alias("taken")));
int cuGetErrorName() __attribute__((alias("taken")));
int cuGetErrorString() __attribute__((alias("taken")));
int cuKernelGetAttribute() __attribute__((alias("taken")));
int cuKernelSetAttribute() __attribute__((alias("taken")));
int cuLaunchCooperativeKernel() __attribute__((alias("taken")));
int cuLaunchKernel() __attribute__((alias("taken")));
int cuLaunchKernelEx() __attribute__((alias("taken")));
int cuLibraryLoadFromFile() __attribute__((alias("taken")));
int cuLibraryUnload() __attribute__((alias("taken")));
int cuLinkAddData() __attribute__((alias("taken")));
int cuLinkAddData_v2() __attribute__((alias("taken")));
int cuLinkAddFile_v2() __attribute__((alias("taken")));
int cuLinkComplete() __attribute__((alias("taken")));
int cuLinkCreate() __attribute__((alias("taken")));
int cuLinkCreate_v2() __attribute__((alias("taken")));
int cuLinkDestroy() __attribute__((alias("taken")));
int cuMemcpyDtoH_v2() __attribute__((alias("taken")));
int cuModuleGetGlobal_v2() __attribute__((alias("taken")));
int cuModuleUnload() __attribute__((alias("taken")));
int cuOccupancyMaxActiveBlocksPerMultiprocessor() __attribute__((alias("taken")));
int cuOccupancyMaxPotentialClusterSize() __attribute__((alias("taken")));
int cuStreamGetCtx() __attribute__((alias("taken")));
int cuStreamSynchronize() __attribute__((alias("taken")));
int cuTensorMapEncodeTiled() __attribute__((alias("taken")));
}
