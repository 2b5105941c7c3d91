// UpdateRule: how a solver type changes the parameters. SolverRegistry: from a solver's `type` to
// its rule.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The numbers of one update.
struct UpdateScalars {
  int iter = 0;  // updates done before this one
  double rate = 0, momentum = 0, weight_decay = 0;
  double gradient_scale = 1;  // 1 / iter_size, times the factor of clip_gradients
};

class UpdateRule {
 public:
  // Derived constructors throw InvalidArgument for options that the rule does not allow.
  explicit UpdateRule(const SolverParameter& param) : param_(param) {}
  virtual ~UpdateRule() = default;
  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;

  virtual int history_sets() const { return 1; }
  // Called for each training net before its first update. history[s * params.size() + i] is blob s
  // of parameter i.
  virtual void Prepare(const Net& net, const std::vector<std::shared_ptr<Blob>>& history) = 0;
  virtual void Update(const UpdateScalars& scalars) = 0;

 protected:
  const SolverParameter param_;
};

class SolverRegistry {
 public:
  using Creator = std::unique_ptr<UpdateRule> (*)(const SolverParameter&);

  // Throws InternalError when the type is taken.
  static void AddCreator(const std::string& type, Creator creator);
  // Throws InvalidArgument naming the nearest known type and all of them.
  static std::unique_ptr<UpdateRule> CreateRule(const SolverParameter& param);
  // Sorted.
  static std::vector<std::string> SolverTypeList();
};

struct SolverRegistrar {
  SolverRegistrar(const char* type, SolverRegistry::Creator creator) {
    SolverRegistry::AddCreator(type, creator);
  }
};

}  // namespace caffe

// Registers class <Type>Rule for `type: "<Type>"`.
#define REGISTER_SOLVER_CLASS(Type)                                                       \
  static const ::caffe::SolverRegistrar solver_registrar_##Type(                          \
      #Type,                                                                              \
      [](const ::caffe::SolverParameter& param) -> std::unique_ptr<::caffe::UpdateRule> { \
        return std::make_unique<Type##Rule>(param);                                       \
      })
