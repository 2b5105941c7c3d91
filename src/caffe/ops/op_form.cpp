#include "caffe/ops/op_form.hpp"

#include <algorithm>

namespace caffe {

OpForms& OpForms::Get() {
  static OpForms forms;
  return forms;
}

void OpForms::Register(std::string_view op, OpForm form) {
  forms_.emplace_back(op, form);
}

const OpForm* OpForms::Find(std::string_view op) const {
  const auto found = std::ranges::find(forms_, op, [](const auto& form) { return form.first; });
  return found == forms_.end() ? nullptr : &found->second;
}

}  // namespace caffe
