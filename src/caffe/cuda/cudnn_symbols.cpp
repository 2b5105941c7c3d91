// Defines the functions of cuDNN and NVRTC that cudnn-frontend calls by name, as calls into the
// libraries that VendorLibrary finds: linking them would make the loader require them on machines
// without a GPU. The symbols are hidden, so that the libraries' internal calls stay unaffected.
#include <cudnn.h>
#include <nvrtc.h>

#include "caffe/cuda/nvidia_libraries.hpp"

#define CAFFE_FORWARD(library, result, name, parameters, arguments)              \
  extern "C" __attribute__((visibility("hidden"))) result name parameters {      \
    static const auto function =                                                 \
        reinterpret_cast<decltype(&name)>(caffe::cuda::library().Symbol(#name)); \
    return function arguments;                                                   \
  }
#define CAFFE_FORWARD_CUDNN(name, parameters, arguments) \
  CAFFE_FORWARD(CudnnLibrary, cudnnStatus_t, name, parameters, arguments)
#define CAFFE_FORWARD_NVRTC(name, parameters, arguments) \
  CAFFE_FORWARD(NvrtcLibrary, nvrtcResult, name, parameters, arguments)

CAFFE_FORWARD(CudnnLibrary, size_t, cudnnGetVersion, (), ())
CAFFE_FORWARD(CudnnLibrary, const char*, cudnnGetErrorString, (cudnnStatus_t s), (s))
CAFFE_FORWARD(CudnnLibrary, void, cudnnGetLastErrorString, (char* message, size_t size),
              (message, size))
CAFFE_FORWARD_CUDNN(cudnnCreate, (cudnnHandle_t * h), (h))
CAFFE_FORWARD_CUDNN(cudnnDestroy, (cudnnHandle_t h), (h))
CAFFE_FORWARD_CUDNN(cudnnSetStream, (cudnnHandle_t h, cudaStream_t s), (h, s))
CAFFE_FORWARD_CUDNN(cudnnGetStream, (cudnnHandle_t h, cudaStream_t* s), (h, s))
CAFFE_FORWARD_CUDNN(cudnnBackendCreateDescriptor,
                    (cudnnBackendDescriptorType_t t, cudnnBackendDescriptor_t* d), (t, d))
CAFFE_FORWARD_CUDNN(cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t d), (d))
CAFFE_FORWARD_CUDNN(cudnnBackendFinalize, (cudnnBackendDescriptor_t d), (d))
CAFFE_FORWARD_CUDNN(cudnnBackendSetAttribute,
                    (cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t n,
                     cudnnBackendAttributeType_t t, int64_t count, const void* values),
                    (d, n, t, count, values))
CAFFE_FORWARD_CUDNN(cudnnBackendGetAttribute,
                    (const cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t n,
                     cudnnBackendAttributeType_t t, int64_t wanted, int64_t* count, void* values),
                    (d, n, t, wanted, count, values))
CAFFE_FORWARD_CUDNN(cudnnBackendExecute,
                    (cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack),
                    (h, plan, pack))

CAFFE_FORWARD_NVRTC(nvrtcCompileProgram, (nvrtcProgram p, int n, const char* const* o), (p, n, o))
CAFFE_FORWARD_NVRTC(nvrtcCreateProgram,
                    (nvrtcProgram * p, const char* source, const char* name, int n,
                     const char* const* headers, const char* const* names),
                    (p, source, name, n, headers, names))
CAFFE_FORWARD_NVRTC(nvrtcDestroyProgram, (nvrtcProgram * p), (p))
CAFFE_FORWARD_NVRTC(nvrtcGetCUBIN, (nvrtcProgram p, char* s), (p, s))
CAFFE_FORWARD_NVRTC(nvrtcGetCUBINSize, (nvrtcProgram p, size_t* s), (p, s))
CAFFE_FORWARD_NVRTC(nvrtcGetPTX, (nvrtcProgram p, char* s), (p, s))
CAFFE_FORWARD_NVRTC(nvrtcGetPTXSize, (nvrtcProgram p, size_t* s), (p, s))
CAFFE_FORWARD_NVRTC(nvrtcGetProgramLog, (nvrtcProgram p, char* s), (p, s))
CAFFE_FORWARD_NVRTC(nvrtcGetProgramLogSize, (nvrtcProgram p, size_t* s), (p, s))
