// Handles objects that own threads after fork(): the child has a copy of the objects, but not their
// threads.
#pragma once

#include <memory>
#include <utility>

#include "caffe/export.hpp"

namespace caffe {

// Number of forks between the program's first process and this one; differs between parent and
// child.
CAFFE_EXPORT int ForkDepth();

// Deletes the object only in the process that made it. In a child the object is leaked, because
// joining its threads, or destroying a condition variable on which one of them waited, would hang.
template <typename T>
class DeleteWhereMade {
 public:
  void operator()(T* object) const {
    if (is_of_this_process()) delete object;
  }
  bool is_of_this_process() const { return depth_ == ForkDepth(); }

 private:
  int depth_ = ForkDepth();
};

// Owns an object that has threads.
template <typename T>
using ThreadedPtr = std::unique_ptr<T, DeleteWhereMade<T>>;

template <typename T, typename... Args>
ThreadedPtr<T> MakeThreaded(Args&&... args) {
  return ThreadedPtr<T>(new T(std::forward<Args>(args)...));
}

template <typename T>
bool IsOfThisProcess(const ThreadedPtr<T>& object) {
  return object.get_deleter().is_of_this_process();
}

}  // namespace caffe
