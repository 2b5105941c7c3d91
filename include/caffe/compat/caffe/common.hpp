// Common header of programs written for Caffe: logging, the names taken from the standard library,
// macros, and the settings of a thread (class Caffe).
#pragma once

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <climits>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bvlc_namespace.hpp"
#include "util/device_alternate.hpp"

#define AS_STRING(m) CAFFE_AS_STRING(m)
#define CAFFE_AS_STRING(m) #m

#define DISABLE_COPY_AND_ASSIGN(classname) \
 private:                                  \
  classname(const classname&);             \
  classname& operator=(const classname&)

#define INSTANTIATE_CLASS(classname) \
  template class classname<float>;   \
  template class classname<double>

#define INSTANTIATE_LAYER_GPU_FORWARD(classname)                                                  \
  template void classname<float>::Forward_gpu(const std::vector<::caffe::Blob<float>*>& bottom,   \
                                              const std::vector<::caffe::Blob<float>*>& top);     \
  template void classname<double>::Forward_gpu(const std::vector<::caffe::Blob<double>*>& bottom, \
                                               const std::vector<::caffe::Blob<double>*>& top)

#define INSTANTIATE_LAYER_GPU_BACKWARD(classname)                                                 \
  template void classname<float>::Backward_gpu(const std::vector<::caffe::Blob<float>*>& top,     \
                                               const std::vector<bool>& propagate_down,           \
                                               const std::vector<::caffe::Blob<float>*>& bottom); \
  template void classname<double>::Backward_gpu(const std::vector<::caffe::Blob<double>*>& top,   \
                                                const std::vector<bool>& propagate_down,          \
                                                const std::vector<::caffe::Blob<double>*>& bottom)

#define INSTANTIATE_LAYER_GPU_FUNCS(classname) \
  INSTANTIATE_LAYER_GPU_FORWARD(classname);    \
  INSTANTIATE_LAYER_GPU_BACKWARD(classname)

#define NOT_IMPLEMENTED LOG(FATAL) << "Not Implemented Yet"

CAFFE_BVLC_BEGIN
using std::fstream;
using std::ios;
using std::isinf;
using std::isnan;
using std::iterator;
using std::make_pair;
using std::map;
using std::ostringstream;
using std::pair;
using std::set;
using std::shared_ptr;
using std::string;
using std::stringstream;
using std::vector;

// Return type for functions whose callers expect either std::shared_ptr or boost::shared_ptr,
// because Caffe has used both: it is the first and converts to the second.
template <typename T>
class Shared : public std::shared_ptr<T> {
  struct Keep {
    std::shared_ptr<T> kept;
    void operator()(T*) { kept.reset(); }
  };

 public:
  Shared() {}
  Shared(std::shared_ptr<T> pointer) : std::shared_ptr<T>(std::move(pointer)) {}

  template <
      template <typename> class Pointer,
      typename = typename std::enable_if<!std::is_base_of<Pointer<T>, Shared<T>>::value &&
                                         std::is_constructible<Pointer<T>, T*, Keep>::value>::type>
  operator Pointer<T>() const {
    return *this == nullptr ? Pointer<T>() : Pointer<T>(this->get(), Keep{*this});
  }
};

// Parses the command line (gflags) and starts logging (glog).
void GlobalInit(int* pargc, char*** pargv);

// Settings: the mode, the device and the seed belong to the process; the random numbers and the
// rank among workers belong to the thread.
class Caffe {
 public:
  ~Caffe();
  // Returns the settings of the calling thread.
  static Caffe& Get();

  enum Brew { CPU, GPU };

  // Random numbers for user code; a net's own fillers and dropout follow set_random_seed() alone.
  class RNG {
   public:
    RNG();
    explicit RNG(unsigned int seed);
    // Returns an rng_t*; see util/rng.hpp.
    void* generator();

   private:
    std::shared_ptr<void> generator_;
  };

  static RNG& rng_stream();
  static Brew mode();
  static void set_mode(Brew mode);
  // Nets built from now on, and rng_stream(), draw the same numbers each time.
  static void set_random_seed(const unsigned int seed);
  static void SetDevice(const int device_id);
  // Logs the device's description. Throws if there is no device.
  static void DeviceQuery();
  static bool CheckDevice(const int device_id);
  // Returns the first device from start_id on, or -1.
  static int FindDevice(const int start_id = 0);

  static int solver_count();
  static void set_solver_count(int value);
  static int solver_rank();
  static void set_solver_rank(int value);
  static bool multiprocess();
  static void set_multiprocess(bool value);
  static bool root_solver() { return solver_rank() == 0; }

#ifdef CAFFE_HAS_CUBLAS_HEADER
  // The handle of the thread and its current device, on the default stream. Callers must link
  // cuBLAS.
  static cublasHandle_t cublas_handle() {
    static thread_local std::map<int, cublasHandle_t> handles;
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    cublasHandle_t& handle = handles[device];
    if (handle == nullptr) CUBLAS_CHECK(cublasCreate(&handle));
    return handle;
  }
#endif

 private:
  Caffe();
  friend class RandomScope;

  RNG random_;
  int solver_count_, solver_rank_;
  bool multiprocess_;

  DISABLE_COPY_AND_ASSIGN(Caffe);
};

CAFFE_BVLC_END
