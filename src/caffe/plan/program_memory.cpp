#include "caffe/plan/program_memory.hpp"

#include <utility>

#include "caffe/error.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

ProgramMemory::ProgramMemory(std::shared_ptr<const Program> program)
    : program_(std::move(program)), operands_(program_->steps.size()) {}

void ProgramMemory::Bind(Bindings bindings) {
  CAFFE_ASSERT(bindings.size() == program_->tensors.size());
  bindings_ = std::move(bindings);
  if (blocks_.arena) BindOperands();
}

void ProgramMemory::Allocate() {
  if (blocks_.arena) return;
  const Blocks offered = std::exchange(offered_, {});
  const auto take = [&](std::shared_ptr<void>* mine, int64_t* mine_bytes,
                        const std::shared_ptr<void>& theirs, int64_t their_bytes, int64_t needed) {
    const bool serves = theirs != nullptr && their_bytes >= needed;
    *mine_bytes = serves ? their_bytes : needed;
    *mine = serves ? theirs : program_->device->Allocate(static_cast<size_t>(needed));
  };
  Blocks blocks;  // all or none of them, if memory runs out
  take(&blocks.arena, &blocks.arena_bytes, offered.arena, offered.arena_bytes,
       program_->arena_bytes);
  take(&blocks.workspace, &blocks.workspace_bytes, offered.workspace, offered.workspace_bytes,
       program_->workspace_bytes);
  blocks_ = std::move(blocks);
  BindOperands();
}

ProgramMemory::Blocks ProgramMemory::Release() {
  return std::exchange(blocks_.arena ? blocks_ : offered_, {});
}

void ProgramMemory::BindOperands() {
  bound_.clear();
  for (size_t i = 0; i < operands_.size(); ++i) {
    BindOperandsOf(program_->steps[i].inputs, &operands_[i].inputs, false);
    BindOperandsOf(program_->steps[i].outputs, &operands_[i].outputs, true);
  }
}

void ProgramMemory::BindOperandsOf(const std::vector<int>& tensors, std::vector<TensorView>* views,
                                   bool are_outputs) {
  views->assign(tensors.size(), {});
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] < 0) continue;
    const Program::Tensor& tensor = program_->tensors[tensors[i]];
    if (tensor.arena_offset >= 0) {
      (*views)[i] = ArenaView(tensors[i]);
      continue;
    }
    SyncedTensor* const memory = bindings_[tensors[i]];
    CAFFE_ASSERT(memory != nullptr, "'", tensor.name, "' has no memory");
    (*views)[i] = {tensor.desc, nullptr};
    bound_.push_back({&(*views)[i], memory, tensor.bound_offset, are_outputs});
  }
}

bool ProgramMemory::Refresh() {
  bool has_moved = false;
  for (BoundOperand& operand : bound_) {
    void* const data = static_cast<char*>(operand.tensor->data()) + operand.offset;
    has_moved |= operand.view->data != data;
    operand.view->data = data;
  }
  return has_moved;
}

void ProgramMemory::MarkOutputsWritten() {
  for (const BoundOperand& operand : bound_) {
    if (operand.is_output) operand.tensor->MarkWritten();
  }
}

std::map<std::string, int> ProgramMemory::ArenaTensors() const {
  std::map<std::string, int> versions, tensors;
  for (size_t i = 0; i < program_->tensors.size(); ++i) {
    const Program::Tensor& tensor = program_->tensors[i];
    const std::string name = StrCat(tensor.name, '#', versions[tensor.name]++);
    if (tensor.arena_offset >= 0) tensors[name] = static_cast<int>(i);
  }
  return tensors;
}

TensorView ProgramMemory::ArenaView(int tensor) const {
  const Program::Tensor& placed = program_->tensors[tensor];
  return {placed.desc, static_cast<char*>(arena()) + placed.arena_offset};
}

void ProgramMemory::CopyFrom(const ProgramMemory& other, const std::set<int>& tensors) {
  Device& device = *program_->device;
  const std::map<std::string, int> theirs = other.ArenaTensors();
  std::vector<char> from, to;
  for (const auto& [name, tensor] : ArenaTensors()) {
    const auto found = theirs.find(name);
    if (tensors.count(tensor) == 0 || found == theirs.end()) continue;
    const TensorView source = other.ArenaView(found->second), target = ArenaView(tensor);
    CAFFE_ASSERT(source.count() == target.count(), name);
    from.resize(source.bytes());
    to.resize(target.bytes());
    device.CopyToHost(from.data(), source.data, from.size());
    CopyTensor({source, from.data()}, {target, to.data()});
    device.CopyFromHost(target.data, to.data(), to.size());
  }
}

}  // namespace caffe
