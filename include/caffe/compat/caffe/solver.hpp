// Solver<Dtype>: trains a net as a SolverParameter says, with Caffe's method names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net.hpp"
#include "solver_factory.hpp"

CAFFE_BVLC_BEGIN
namespace SolverAction {
enum Enum { NONE = 0, STOP = 1, SNAPSHOT = 2 };
}

typedef std::function<SolverAction::Enum()> ActionCallback;

class SolverAccess;

// The optimizer is Cortado's: `type` of the SolverParameter selects it, whichever class is
// instantiated.
template <typename Dtype>
class Solver {
 public:
  explicit Solver(const SolverParameter& param);
  explicit Solver(const string& param_file);
  virtual ~Solver();

  // `func` is called after each iteration and before each test batch.
  void SetActionFunction(ActionCallback func);
  SolverAction::Enum GetRequestedAction();
  // Trains to max_iter; resumes from the state in resume_file if one is given.
  virtual void Solve(const char* resume_file = NULL);
  inline void Solve(const string& resume_file) { Solve(resume_file.c_str()); }
  void Step(int iters);
  void Restore(const char* resume_file);
  void Snapshot();

  inline const SolverParameter& param() const { return param_; }
  inline shared_ptr<Net<Dtype>> net() { return net_; }
  inline const vector<shared_ptr<Net<Dtype>>>& test_nets() { return test_nets_; }
  int iter() const;

  class Callback {
   public:
    virtual ~Callback() {}

   protected:
    virtual void on_start() = 0;
    virtual void on_gradients_ready() = 0;

    friend class Solver;
  };
  const vector<Callback*>& callbacks() const { return callbacks_; }
  void add_callback(Callback* value);

  // Writes and removes a test file in the snapshot folder. Throws if that fails.
  void CheckSnapshotWritePermissions();
  virtual inline const char* type() const { return type_.c_str(); }
  // Updates all parameters from their gradients.
  void ApplyUpdate();

 protected:
  SolverAccess& access() const { return *access_; }

 private:
  void Show();

  SolverParameter param_;
  string type_;
  std::unique_ptr<SolverAccess> access_;
  shared_ptr<Net<Dtype>> net_;
  vector<shared_ptr<Net<Dtype>>> test_nets_;
  vector<Callback*> callbacks_;
  ActionCallback action_function_;

  DISABLE_COPY_AND_ASSIGN(Solver);
};

extern template class Solver<float>;
extern template class Solver<double>;

CAFFE_BVLC_END
