#include "caffe/net/losses.hpp"

#include <utility>

#include "caffe/device/host_memory.hpp"
#include "caffe/error.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

// Calls fn(tensor, weight) for each top that has a loss weight.
template <typename Fn>
void ForEachLoss(const Graph& graph, const Bindings& bindings, int first, int last, const Fn& fn) {
  for (int i = first; i <= last; ++i) {
    const LayerCall& call = graph.calls[i];
    for (size_t k = 0; k < call.tops.size(); ++k) {
      if (call.loss_weights[k] != 0) fn(*bindings[call.tops[k]->id], call.loss_weights[k]);
    }
  }
}

template <typename T>
double Sum(const T* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(static_cast<Accum<T>>(values[i]));
  return sum;
}

}  // namespace

float LossOf(const Graph& graph, const Bindings& bindings, int first, int last) {
  double loss = 0;
  ForEachLoss(graph, bindings, first, last, [&](SyncedTensor& tensor, float weight) {
    loss += weight * Sum(tensor.host<float>(), tensor.desc().count());
  });
  return static_cast<float>(loss);
}

LossesInFlight::InFlight LossesInFlight::Take(size_t bytes) {
  while (!idle_.empty() && idle_.front().bytes != bytes) idle_.pop_front();
  if (idle_.empty()) return {{}, AllocateHostMemory(*device_, bytes), device_->MakeEvent(), bytes};
  InFlight taken = std::move(idle_.front());
  idle_.pop_front();
  taken.parts.clear();
  return taken;
}

void LossesInFlight::Send(const Graph& graph, const Bindings& bindings) {
  const int last = static_cast<int>(graph.calls.size()) - 1;
  size_t bytes = 0;
  ForEachLoss(graph, bindings, 0, last,
              [&](SyncedTensor& tensor, float) { bytes += tensor.desc().bytes(); });
  InFlight sent = Take(bytes);
  Stream& stream = device_->compute_stream();
  char* to = static_cast<char*>(sent.memory.get());
  ForEachLoss(graph, bindings, 0, last, [&](SyncedTensor& tensor, float weight) {
    stream.CopyToHost(to, tensor.data(), tensor.desc().bytes());
    to += tensor.desc().bytes();
    sent.parts.push_back({tensor.desc(), weight});
  });
  stream.Record(*sent.arrived);
  in_flight_.push_back(std::move(sent));
}

float LossesInFlight::Await() {
  CAFFE_ASSERT(!in_flight_.empty(), "AwaitLoss without LaunchForwardBackward");
  InFlight arrived = std::move(in_flight_.front());
  in_flight_.pop_front();
  arrived.arrived->Synchronize();
  const char* from = static_cast<const char*>(arrived.memory.get());
  double loss = 0;
  for (const auto& [desc, weight] : arrived.parts) {
    VisitFloat(desc.dtype, [&]<typename T>(TypeTag<T>) {
      loss += weight * Sum(reinterpret_cast<const T*>(from), desc.count());
    });
    from += desc.bytes();
  }
  idle_.push_back(std::move(arrived));
  return static_cast<float>(loss);
}

}  // namespace caffe
