#include "caffe/plan/program_memory.hpp"

#include <utility>

#include "caffe/error.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

ProgramMemory::ProgramMemory(std::shared_ptr<const Program> program)
    : program_(std::move(program)),
      operands_(program_->steps.size()),
      of_copies_(program_->copies.size()) {
  for (const Program::Copy& copy : program_->copies)
    copied_.insert(copy.results.begin(), copy.results.end());
}

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
  for (std::vector<BoundOperand>& operands : of_copies_) operands.clear();
  for (size_t i = 0; i < operands_.size(); ++i) {
    BindOperandsOf(i, /*are_outputs=*/false);
    BindOperandsOf(i, /*are_outputs=*/true);
  }
}

void ProgramMemory::BindOperandsOf(size_t step, bool are_outputs) {
  const std::vector<int>& tensors =
      are_outputs ? program_->steps[step].outputs : program_->steps[step].inputs;
  std::vector<TensorView>& views = are_outputs ? operands_[step].outputs : operands_[step].inputs;
  std::vector<BoundOperand>& bound = step < of_copies_.size() ? of_copies_[step] : bound_;
  views.assign(tensors.size(), {});
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] < 0) continue;
    const Program::Tensor& tensor = program_->tensors[tensors[i]];
    if (tensor.arena_offset >= 0) {
      views[i] = ArenaView(tensors[i]);
      continue;
    }
    SyncedTensor* const memory = bindings_[tensors[i]];
    CAFFE_ASSERT(memory != nullptr, "'", tensor.name, "' has no memory");
    views[i] = {tensor.desc, nullptr};
    const bool is_param = !are_outputs && copied_.count(tensors[i]) == 0;
    bound.push_back({&views[i], memory, tensor.bound_offset, are_outputs, is_param});
  }
}

ProgramMemory::CopyOperands::CopyOperands(ProgramMemory* memory, size_t copy,
                                          bool keeps_inputs_away)
    : memory_(*memory), copy_(copy) {
  try {
    for (const BoundOperand& operand : memory_.of_copies_[copy_]) {
      const bool is_away = !operand.is_output && keeps_inputs_away;
      void* const data = is_away            ? nullptr
                         : operand.is_param ? operand.tensor->Borrow()
                                            : operand.tensor->data();
      operand.view->data = is_away ? nullptr : static_cast<char*>(data) + operand.offset;
      if (operand.is_param && !is_away) ++borrowed_;
    }
  } catch (...) {
    Release();
    throw;
  }
}

ProgramMemory::CopyOperands::~CopyOperands() {
  Release();
}

void ProgramMemory::CopyOperands::Release() {
  for (const BoundOperand& operand : memory_.of_copies_[copy_]) {
    operand.view->data = nullptr;
    if (operand.is_param && borrowed_ > 0) operand.tensor->Return(), --borrowed_;
  }
}

ProgramMemory::RoundOperands::RoundOperands(ProgramMemory* memory, const Program::Loop& loop,
                                            int64_t round)
    : memory_(*memory), loop_(loop), first_item_(loop.batch.FirstItem(round)) {
  memory_.MoveOperands(loop_, first_item_);
}

ProgramMemory::RoundOperands::~RoundOperands() {
  memory_.MoveOperands(loop_, -first_item_);
}

void ProgramMemory::MoveOperands(const Program::Loop& loop, int64_t items) {
  const auto move = [&](const std::vector<int>& tensors, std::vector<TensorView>& views) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i] < 0 || program_->tensors[tensors[i]].whole < 0) continue;
      const int64_t item_bytes = static_cast<int64_t>(views[i].bytes()) / views[i].shape[0];
      views[i].data = views[i].as<char>() + items * item_bytes;
    }
  };
  for (size_t step = loop.first; step < loop.last; ++step) {
    move(program_->steps[step].inputs, operands_[step].inputs);
    move(program_->steps[step].outputs, operands_[step].outputs);
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
