#include "caffe/solvers/solver_state.hpp"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>

#include "caffe/core/hash.hpp"
#include "caffe/core/paths.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/net/weights.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

bool IsDefault(const ops::StepState& state) {
  return state.scale == 1 && state.skipped_steps == 0;
}

template <typename Numbers>
void AddNumbers(const Numbers& numbers, WordHash* hash) {
  hash->AddWord(numbers.size());
  // Matches what both formats read back: NaNs may have lost their bits.
  for (const double number : numbers)
    hash->AddWord(std::isnan(number) ? 1 : std::bit_cast<uint64_t>(number));
}

// Hash of everything except the history.
WordHash HashOf(const SolverProgress& progress) {
  WordHash hash;
  for (const int number : {progress.iter, progress.current_step, progress.plateau.iter_last_event})
    hash.AddWord(static_cast<uint64_t>(number));
  // Binary files store a float.
  AddNumbers(std::vector{static_cast<float>(progress.plateau.minimum_loss)}, &hash);
  AddNumbers(progress.recent_losses, &hash);
  AddNumbers(progress.larc_cosines, &hash);
  for (const std::string* text :
       {&progress.learned_net, &progress.solver_type, &progress.net_name, &progress.solver}) {
    hash.Add(*text);
  }
  for (const uint64_t number :
       {progress.weights.bytes, progress.weights.hash, progress.net_hash, progress.seed}) {
    hash.AddWord(number);
  }
  const ops::StepState& scale = progress.gradient_scale;
  AddNumbers(std::vector{scale.scale, scale.limit, scale.good_steps, scale.skipped_steps,
                         scale.skipped_in_a_row},
             &hash);
  AddToHash(progress.delivered_records, &hash);
  if (progress.averaged_updates > 0) hash.AddWord(static_cast<uint64_t>(progress.averaged_updates));
  // Absent in files of earlier versions, whose checksum must stay valid.
  const BestTest& best = progress.best_test;
  if (best == BestTest()) return hash;
  AddNumbers(std::vector{best.metric.value_or(0)}, &hash);
  for (const int number : {best.metric ? 1 : 0, best.iteration, best.tests_since})
    hash.AddWord(static_cast<uint64_t>(number));
  return hash;
}

uint64_t ChecksumOf(const SolverProgress& progress, const History& history) {
  WordHash hash = HashOf(progress);
  for (const History* blobs : {&history, &progress.raw_parameters}) {
    for (const std::shared_ptr<Blob>& blob : *blobs) {
      const auto count = static_cast<size_t>(blob->count());
      if (blob->data_tensor().desc().dtype == DType::kDouble) {
        AddNumbers(std::span(blob->cpu_data<double>(), count), &hash);
      } else {
        AddNumbers(std::span(blob->cpu_data<float>(), count), &hash);
      }
    }
  }
  return hash.value();
}

// Passing weights instead of a state is the most likely mistake, so it has its own error text.
void ThrowIfWeights(const std::string& file) {
  NetParameter net;
  try {
    ReadBinaryProto(file, &net);
  } catch (const Error&) {
    return;
  }
  if (net.layer_size() == 0 && net.layers_size() == 0) return;
  throw IoError(
      file +
      ": holds weights, not a solver state; give it to --weights, or the .solverstate next to it "
      "to --snapshot");
}

// Writes blobs by index, in a group of that name.
void WriteBlobs(const std::string& group, const History& blobs, Hdf5Writer* writer) {
  writer->CreateGroup(group);
  for (size_t i = 0; i < blobs.size(); ++i) {
    const Blob& blob = *blobs[i];
    const std::string dataset = group + "/" + std::to_string(i);
    const size_t count = static_cast<size_t>(blob.count());
    if (blob.data_tensor().desc().dtype == DType::kDouble) {
      writer->WriteDoubles(dataset, blob.shape(), {blob.cpu_data<double>(), count});
    } else {
      writer->WriteFloats(dataset, blob.shape(), {blob.cpu_data<float>(), count});
    }
  }
}

std::vector<BlobProto> ReadBlobs(const Hdf5Reader& reader, const std::string& group) {
  std::vector<BlobProto> blobs;
  for (const std::string& index : reader.LinksOf(group)) {
    const std::string dataset = group + "/" + index;
    WriteBlobDoubles(reader.ShapeOf(dataset), reader.ReadDoubles(dataset), &blobs.emplace_back());
  }
  return blobs;
}

}  // namespace

void WriteHdf5State(const SolverProgress& progress, const History& history, Hdf5Writer* file) {
  Hdf5Writer& writer = *file;
  writer.WriteInteger("iter", progress.iter);
  writer.WriteString("learned_net", progress.learned_net);
  writer.WriteInteger("current_step", progress.current_step);
  WriteBlobs("history", history, &writer);
  // Values that BVLC's files do not have are stored in a group that its reader ignores.
  writer.WriteDoubles("cortado/minimum_loss", Shape{1},
                      std::vector<double>{progress.plateau.minimum_loss});
  writer.WriteInteger("cortado/iter_last_event", progress.plateau.iter_last_event);
  if (!progress.recent_losses.empty()) {
    const auto count = static_cast<int64_t>(progress.recent_losses.size());
    writer.WriteFloats("cortado/recent_loss", Shape{count}, progress.recent_losses);
  }
  writer.WriteString("cortado/solver_type", progress.solver_type);
  writer.WriteString("cortado/net_name", progress.net_name);
  writer.WriteString("cortado/random_seed", std::to_string(progress.seed));
  const ops::StepState& scale = progress.gradient_scale;
  if (!IsDefault(scale)) {
    const std::vector<double> values = {scale.scale, scale.limit, scale.good_steps,
                                        scale.skipped_steps, scale.skipped_in_a_row};
    const auto count = static_cast<int64_t>(values.size());
    writer.WriteDoubles("cortado/gradient_scale", Shape{count}, values);
  }
  if (!progress.larc_cosines.empty()) {
    const auto count = static_cast<int64_t>(progress.larc_cosines.size());
    writer.WriteFloats("cortado/larc_cosine", Shape{count}, progress.larc_cosines);
  }
  if (const BestTest& best = progress.best_test; !(best == BestTest())) {
    if (best.metric) {
      writer.WriteDoubles("cortado/best_metric", Shape{1}, std::vector<double>{*best.metric});
      writer.WriteInteger("cortado/best_iteration", best.iteration);
    }
    writer.WriteInteger("cortado/tests_since_best", best.tests_since);
  }
  if (progress.averaged_updates > 0) {
    writer.WriteInteger("cortado/averaged_updates", progress.averaged_updates);
    WriteBlobs("cortado/raw_parameter", progress.raw_parameters, &writer);
  }
  Store(progress.delivered_records, "cortado", &writer);
  Store(progress.test_positions, "cortado", &writer);
  if (!progress.test_positions.empty()) {
    writer.WriteInteger("cortado/test_checksum",
                        static_cast<int64_t>(HashOf(progress.test_positions)));
  }
  writer.WriteInteger("cortado/weights_bytes", static_cast<int64_t>(progress.weights.bytes));
  writer.WriteInteger("cortado/weights_hash", static_cast<int64_t>(progress.weights.hash));
  writer.WriteString("cortado/solver", progress.solver);
  writer.WriteInteger("cortado/net_hash", static_cast<int64_t>(progress.net_hash));
  writer.WriteInteger("cortado/checksum", static_cast<int64_t>(ChecksumOf(progress, history)));
}

SolverState MakeSolverState(const SolverProgress& progress, const History& history) {
  SolverState state;
  state.set_iter(progress.iter);
  state.set_current_step(progress.current_step);
  state.set_minimum_loss(static_cast<float>(progress.plateau.minimum_loss));
  state.set_iter_last_event(progress.plateau.iter_last_event);
  state.mutable_recent_loss()->Assign(progress.recent_losses.begin(), progress.recent_losses.end());
  state.set_learned_net(progress.learned_net);
  state.set_weights_bytes(progress.weights.bytes);
  state.set_weights_hash(progress.weights.hash);
  state.set_solver(progress.solver);
  state.set_net_hash(progress.net_hash);
  state.set_solver_type(progress.solver_type);
  state.set_net_name(progress.net_name);
  state.set_random_seed(progress.seed);
  Store(progress.delivered_records, &state);
  Store(progress.test_positions, &state);
  if (!progress.test_positions.empty()) state.set_test_checksum(HashOf(progress.test_positions));
  if (!IsDefault(progress.gradient_scale)) {
    GradientScaleState* scale = state.mutable_gradient_scale();
    scale->set_scale(progress.gradient_scale.scale);
    scale->set_limit(progress.gradient_scale.limit);
    scale->set_good_steps(static_cast<int>(progress.gradient_scale.good_steps));
    scale->set_skipped_steps(static_cast<int64_t>(progress.gradient_scale.skipped_steps));
    scale->set_skipped_in_a_row(static_cast<int>(progress.gradient_scale.skipped_in_a_row));
  }
  state.mutable_larc_cosine()->Assign(progress.larc_cosines.begin(), progress.larc_cosines.end());
  if (const BestTest& best = progress.best_test; !(best == BestTest())) {
    if (best.metric) {
      state.set_best_metric(*best.metric);
      state.set_best_iteration(best.iteration);
    }
    state.set_tests_since_best(best.tests_since);
  }
  for (const std::shared_ptr<Blob>& blob : history)
    WriteBlob(*blob, /*write_diff=*/false, state.add_history());
  if (progress.averaged_updates > 0) {
    state.set_averaged_updates(progress.averaged_updates);
    for (const std::shared_ptr<Blob>& blob : progress.raw_parameters)
      WriteBlob(*blob, /*write_diff=*/false, state.add_raw_parameter());
  }
  state.set_checksum(ChecksumOf(progress, history));
  return state;
}

SnapshotReader::SnapshotReader(const std::string& file) : file_(file) {
  file.ends_with(".h5") ? ReadHdf5() : ReadBinary();
}

void SnapshotReader::ReadBinary() {
  SolverState state;
  try {
    ReadBinaryProto(file_, &state);
  } catch (const IoError&) {
    ThrowIfWeights(file_);
    throw;
  }
  if (!state.has_iter()) {
    ThrowIfWeights(file_);
    throw IoError(file_ + ": not a solver state (it has no iteration)");
  }
  Take(state);
  // Files of other programs and of earlier versions have neither.
  if (state.has_checksum() || state.has_weights_bytes()) Verify(state.checksum());
  VerifyTests(state.has_test_checksum() ? state.test_checksum() : 0);
}

void SnapshotReader::Take(const SolverState& state) {
  progress_.iter = state.iter();
  progress_.current_step = state.current_step();
  progress_.plateau = {state.minimum_loss(), state.iter_last_event()};
  progress_.recent_losses.assign(state.recent_loss().begin(), state.recent_loss().end());
  progress_.learned_net = state.learned_net();
  progress_.weights = {state.weights_bytes(), state.weights_hash()};
  progress_.solver = state.solver();
  progress_.net_hash = state.net_hash();
  progress_.solver_type = state.solver_type();
  progress_.net_name = state.net_name();
  progress_.has_seed = state.has_random_seed();
  progress_.seed = state.random_seed();
  progress_.delivered_records = DeliveredIn(state);
  progress_.test_positions = TestPositionsIn(state);
  if (state.has_gradient_scale()) {
    const GradientScaleState& scale = state.gradient_scale();
    progress_.gradient_scale = {.scale = scale.scale(),
                                .limit = scale.limit(),
                                .good_steps = static_cast<double>(scale.good_steps()),
                                .skipped_steps = static_cast<double>(scale.skipped_steps()),
                                .skipped_in_a_row = static_cast<double>(scale.skipped_in_a_row())};
  }
  progress_.larc_cosines.assign(state.larc_cosine().begin(), state.larc_cosine().end());
  if (state.has_best_metric()) {
    progress_.best_test.metric = state.best_metric();
    progress_.best_test.iteration = state.best_iteration();
  }
  progress_.best_test.tests_since = state.tests_since_best();
  history_.assign(state.history().begin(), state.history().end());
  progress_.averaged_updates = state.averaged_updates();
  raw_parameters_.assign(state.raw_parameter().begin(), state.raw_parameter().end());
}

void SnapshotReader::ReadHdf5() {
  const Hdf5Reader reader(file_);
  const auto refuse = [&](const std::string& name, const auto&... what) {
    throw IoError(StrCat(file_, ": '", name, "' ", what..., "; the file is damaged"));
  };
  const auto read_int = [&](const std::string& name) {
    const int64_t value = reader.ReadInteger(name);
    if (value < 0 || value > std::numeric_limits<int>::max()) refuse(name, "is ", value);
    return static_cast<int>(value);
  };
  const auto read_numbers = [&](const std::string& name, size_t least) {
    std::vector<double> numbers = reader.ReadDoubles(name);
    if (numbers.size() < least) refuse(name, "has ", numbers.size(), " of ", least, " numbers");
    return numbers;
  };
  if (!reader.Contains("iter")) {
    throw IoError(file_ + (reader.Contains("data")
                               ? ": holds weights, not a solver state; give it to --weights"
                               : ": not a solver state (it has no 'iter')"));
  }
  progress_.iter = read_int("iter");
  progress_.current_step = read_int("current_step");
  if (reader.Contains("learned_net")) progress_.learned_net = reader.ReadString("learned_net");
  history_ = ReadBlobs(reader, "history");
  if (!reader.Contains("cortado")) return;
  progress_.plateau.minimum_loss = read_numbers("cortado/minimum_loss", 1)[0];
  progress_.plateau.iter_last_event = read_int("cortado/iter_last_event");
  if (reader.Contains("cortado/recent_loss")) {
    progress_.recent_losses = reader.ReadFloats("cortado/recent_loss");
  }
  progress_.solver_type = reader.ReadString("cortado/solver_type");
  progress_.net_name = reader.ReadString("cortado/net_name");
  progress_.has_seed = true;
  const std::string seed = reader.ReadString("cortado/random_seed");
  const char* end = seed.data() + seed.size();
  const auto [parsed, error] = std::from_chars(seed.data(), end, progress_.seed);
  if (error != std::errc() || parsed != end) {
    refuse("cortado/random_seed", "is '", seed, "'");
  }
  if (reader.Contains("cortado/gradient_scale")) {
    const std::vector<double> scale = read_numbers("cortado/gradient_scale", 4);
    progress_.gradient_scale = {.scale = scale[0],
                                .limit = scale[1],
                                .good_steps = scale[2],
                                .skipped_steps = scale[3],
                                .skipped_in_a_row = scale.size() > 4 ? scale[4] : 0};
  }
  if (reader.Contains("cortado/larc_cosine")) {
    const std::vector<double> cosines = reader.ReadDoubles("cortado/larc_cosine");
    progress_.larc_cosines.assign(cosines.begin(), cosines.end());
  }
  if (reader.Contains("cortado/averaged_updates")) {
    progress_.averaged_updates = read_int("cortado/averaged_updates");
    raw_parameters_ = ReadBlobs(reader, "cortado/raw_parameter");
  }
  if (reader.Contains("cortado/best_metric")) {
    progress_.best_test.metric = read_numbers("cortado/best_metric", 1)[0];
    progress_.best_test.iteration = read_int("cortado/best_iteration");
  }
  if (reader.Contains("cortado/tests_since_best"))
    progress_.best_test.tests_since = read_int("cortado/tests_since_best");
  progress_.delivered_records = DeliveredIn(reader, "cortado");
  progress_.test_positions = TestPositionsIn(reader, "cortado");
  if (!reader.Contains("cortado/weights_bytes") && !reader.Contains("cortado/checksum")) {
    return;  // of an earlier version
  }
  const auto read_bits = [&](const std::string& name) {
    return static_cast<uint64_t>(reader.ReadInteger(name));
  };
  progress_.weights = {read_bits("cortado/weights_bytes"), read_bits("cortado/weights_hash")};
  progress_.solver = reader.ReadString("cortado/solver");
  progress_.net_hash = read_bits("cortado/net_hash");
  Verify(read_bits("cortado/checksum"));
  VerifyTests(reader.Contains("cortado/test_checksum") ? read_bits("cortado/test_checksum") : 0);
}

void SnapshotReader::Verify(uint64_t checksum) const {
  WordHash hash = HashOf(progress_);
  WithContext(file_, [&] {
    for (const BlobProto& blob : history_) AddNumbers(ReadBlobDoubles(blob), &hash);
    for (const BlobProto& blob : raw_parameters_) AddNumbers(ReadBlobDoubles(blob), &hash);
  });
  RequireChecksum(hash.value(), checksum);
}

void SnapshotReader::VerifyTests(uint64_t checksum) const {
  if (progress_.test_positions.empty() && checksum == 0) return;
  RequireChecksum(HashOf(progress_.test_positions), checksum);
}

void SnapshotReader::RequireChecksum(uint64_t found, uint64_t recorded) const {
  if (found != recorded)
    throw IoError(file_ + ": is damaged: its checksum is not that of what it holds");
}

std::string SnapshotReader::WeightsFile() const {
  const std::filesystem::path recorded = progress_.learned_net;
  if (recorded.empty()) return "";
  const std::filesystem::path beside =
      std::filesystem::path(file_).parent_path() / recorded.filename();
  std::string others;  // files found, but not of this state
  for (const std::filesystem::path& place : {recorded, beside}) {
    if (!IsPlainFile(place)) continue;
    if (progress_.weights.bytes == 0 || MarkOfFile(place) == progress_.weights)
      return place.string();
    others = place.string();
  }
  if (!others.empty()) {
    throw IoError(StrCat(file_, ": the weights in '", others,
                         "' are not those with which this state was written: they were replaced "
                         "or damaged, or a run was killed while it wrote a snapshot over an older "
                         "one; resume from another snapshot, or give the weights to --weights to "
                         "start a new training from them"));
  }
  const bool is_one_place = recorded.lexically_normal() == beside.lexically_normal();
  throw IoError(StrCat(
      file_, ": its weights are ",
      is_one_place ? StrCat("not at '", recorded.string())
                   : StrCat("neither at '", recorded.string(), "' nor at '", beside.string()),
      "'; put the .caffemodel next to the state file"));
}

void SnapshotReader::CheckHistory(const History& history) const {
  Require(history_.size() == history.size(), file_, ": has ", history_.size(),
          " history blobs, the solver ", history.size(),
          "; it was written by another solver type or net");
  for (size_t i = 0; i < history.size(); ++i) {
    Require(ShapeOf(history_[i]).count() == history[i]->count(), file_, ": history blob ", i,
            " has shape ", ShapeOf(history_[i]), ", the parameter ", history[i]->shape(),
            "; it was written by another net");
  }
}

void SnapshotReader::ReadHistory(const History& history) const {
  CheckHistory(history);
  for (size_t i = 0; i < history.size(); ++i) {
    WithContext(StrCat(file_, ": history blob ", i),
                [&] { ReadBlob(history_[i], history[i].get()); });
  }
}

void SnapshotReader::CheckRawParameters(const std::vector<Net::LearnableParam>& params) const {
  const bool is_there = progress_.averaged_updates > 0;
  Require(raw_parameters_.size() == (is_there ? params.size() : 0), file_, ": has ",
          raw_parameters_.size(), " parameters in addition to their average, the net ",
          params.size(), "; it was written by another net");
  for (size_t i = 0; i < raw_parameters_.size(); ++i) {
    Require(ShapeOf(raw_parameters_[i]).count() == params[i].blob->count(), file_, ": parameter ",
            params[i].name, " has shape ", ShapeOf(raw_parameters_[i]), ", in the net ",
            params[i].blob->shape(), "; it was written by another net");
  }
}

void SnapshotReader::ReadRawParameters(const std::vector<Net::LearnableParam>& params) const {
  for (size_t i = 0; i < raw_parameters_.size(); ++i) {
    WithContext(StrCat(file_, ": parameter ", params[i].name),
                [&] { ReadBlob(raw_parameters_[i], params[i].blob.get()); });
  }
}

}  // namespace caffe
