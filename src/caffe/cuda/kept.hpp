// What a kernel of a forward pass keeps between its runs: memory, streams, events.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace caffe::cuda {

// A T that is made when it is first asked for: by the kernel's first run, which is never captured,
// and not by its factory. A plan that does not fit the device is refused before. Not for kernels of
// a backward pass: beside it NCCL's kernels may be in flight, for which an allocation may wait.
// Copies share the T. Of one executor: not for several threads at once.
template <typename T>
class Kept {
 public:
  using Make = std::function<std::unique_ptr<T>()>;
  explicit Kept(Make make) : state_(std::make_shared<State>(State{std::move(make), nullptr})) {}

  T& Get() const {
    if (state_->made == nullptr) state_->made = state_->make();
    return *state_->made;
  }

 private:
  struct State {
    Make make;
    std::unique_ptr<T> made;
  };
  std::shared_ptr<State> state_;
};

}  // namespace caffe::cuda
