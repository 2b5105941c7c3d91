// Objects with threads, in a child that fork() made: the child has a copy of the objects, and none
// of the threads.
#pragma once

#include <memory>
#include <utility>

#include "caffe/export.hpp"

namespace caffe {

// Forks between the program's first process and this one: differs between parent and child.
CAFFE_EXPORT int ForkDepth();

// Deletes in the process that made the object. In a child the object stays where it is: joining its
// threads, or destroying a condition variable on which one of them waited, would never end.
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

// Owner of an object that has threads.
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
