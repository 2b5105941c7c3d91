#include "cortado/runtime.h"

#include <fcntl.h>
#include <omp.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "caffe/core/processors.hpp"
#include "caffe/error.hpp"
#include "caffe/runtime/context.hpp"
#include "caffe/version.hpp"

struct cortado_net {
  caffe::runtime::Context context;
};

namespace caffe::runtime {
namespace {

std::string& LastError() {
  thread_local std::string error;
  return error;
}

// Runs `fn` and returns its result, or `failed` if it throws; sets LastError().
template <typename Fn, typename Result>
Result Guard(Result failed, const Fn& fn) noexcept {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    LastError().assign("no memory");  // short enough not to allocate
  } catch (const std::exception& error) {
    try {
      LastError() = error.what();
    } catch (const std::bad_alloc&) {
      LastError().assign("no memory");
    }
  }
  return failed;
}

// Messages lack the path, which the caller adds.
std::string ReadFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer. Reading blocks again.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw IoError(StrCat("cannot open: ", std::strerror(errno)));
  ::fcntl(descriptor, F_SETFL, O_RDONLY);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(::fdopen(descriptor, "rb"), std::fclose);
  if (!file) throw IoError(StrCat("cannot open: ", std::strerror(errno)));
  std::string bytes;
  char block[1 << 16];
  for (size_t got; (got = std::fread(block, 1, sizeof(block), file.get())) > 0;)
    bytes.append(block, got);
  if (std::ferror(file.get())) throw IoError(StrCat("cannot read: ", std::strerror(errno)));
  return bytes;
}

int Describe(const std::string& name, const TensorView& view, cortado_tensor* tensor) {
  *tensor = {};
  tensor->name = name.c_str();
  tensor->type = static_cast<cortado_type>(view.dtype);
  tensor->axes = view.shape.num_axes();
  std::ranges::copy(view.shape.dims(), tensor->shape);
  tensor->count = view.count();
  tensor->data = view.data;
  return 0;
}

void RequireIndex(int index, size_t count, const char* what) {
  Require(index >= 0 && static_cast<size_t>(index) < count, what, " ", index,
          " is asked for; the net has ", count);
}

static_assert(kMaxAxes == std::size(cortado_tensor{}.shape));

}  // namespace
}  // namespace caffe::runtime

using namespace caffe::runtime;

const char* cortado_version(void) {
  return CAFFE_VERSION;
}

const char* cortado_error(void) {
  return LastError().c_str();
}

cortado_net* cortado_open_bytes(const void* bytes, size_t size) {
  return Guard<>(static_cast<cortado_net*>(nullptr), [&] {
    caffe::Require(bytes != nullptr || size == 0, "the bytes of a program are at NULL");
    return new cortado_net{Context(ReadProgram({static_cast<const char*>(bytes), size}))};
  });
}

cortado_net* cortado_open(const char* path) {
  return Guard<>(static_cast<cortado_net*>(nullptr), [&] {
    caffe::Require(path != nullptr, "the path of a program is NULL");
    return caffe::WithContext(path, [&] {
      ProgramFile program = ReadProgram(ReadFile(path));  // frees the bytes
      return new cortado_net{Context(std::move(program))};
    });
  });
}

cortado_net* cortado_share(const cortado_net* net) {
  return Guard<>(static_cast<cortado_net*>(nullptr), [&] {
    caffe::Require(net != nullptr, "the net to share is NULL");
    return new cortado_net{Context(net->context)};
  });
}

void cortado_close(cortado_net* net) {
  delete net;
}

int cortado_input(const cortado_net* net, int index, cortado_tensor* tensor) {
  return Guard<>(-1, [&] {
    caffe::Require(net != nullptr && tensor != nullptr, "the net, or where to write, is NULL");
    RequireIndex(index, net->context.num_inputs(), "input");
    const auto i = static_cast<size_t>(index);
    return Describe(net->context.input_name(i), net->context.input(i), tensor);
  });
}

int cortado_output(const cortado_net* net, int index, cortado_tensor* tensor) {
  return Guard<>(-1, [&] {
    caffe::Require(net != nullptr && tensor != nullptr, "the net, or where to write, is NULL");
    RequireIndex(index, net->context.num_outputs(), "output");
    const auto i = static_cast<size_t>(index);
    return Describe(net->context.output_name(i), net->context.output(i), tensor);
  });
}

int cortado_set_threads(int threads) {
  return Guard<>(-1, [&] {
    const int most = std::max(64, 4 * omp_get_num_procs());
    caffe::Require(threads >= 0 && threads <= most, threads, " threads are asked for; give 0 to ",
                   most);
    omp_set_num_threads(threads > 0 ? threads : caffe::UsableProcessors());
    return 0;
  });
}

int cortado_run(cortado_net* net) {
  return Guard<>(-1, [&] {
    caffe::Require(net != nullptr, "the net to run is NULL");
    net->context.Run();
    return 0;
  });
}
