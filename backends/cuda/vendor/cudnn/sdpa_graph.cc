#include "backends/cuda/vendor/cudnn/sdpa_graph.h"

namespace assay::cuda::vendor {
namespace {

// Strides of a dense tensor.
std::vector<int64_t> dense(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

}  // namespace

SdpaGraph::SdpaGraph(const AttentionShape& shape, Failure& failure)
    : shape_(shape),
      all_{1, shape.heads, shape.queries, shape.keys},
      rows_{1, shape.heads, shape.queries, 1},
      failure_(failure) {
  const int64_t heads = shape.heads;
  const int64_t groups = shape.groups;
  const int64_t channels = shape.channels;
  const int64_t queries = shape.queries;
  const int64_t keys = shape.keys;
  const Dims by_query{queries * heads * channels, channels, heads * channels, 1};
  const Dims by_key{groups * keys * channels, keys * channels, channels, 1};
  const Dims by_key_turned{groups * keys * channels, keys * channels, 1, channels};
  const auto q = tensor(kQ, {1, heads, queries, channels}, by_query, CUDNN_DATA_BFLOAT16);
  const auto k = tensor(kK, {1, groups, channels, keys}, by_key_turned, CUDNN_DATA_BFLOAT16);
  const auto v = tensor(kV, {1, groups, keys, channels}, by_key, CUDNN_DATA_BFLOAT16);
  const auto o = tensor(kO, {1, heads, queries, channels}, by_query, CUDNN_DATA_BFLOAT16);

  const auto products = inner(all_, CUDNN_DATA_FLOAT);
  matmul(q, k, products);
  const auto scores =
      pointwise(CUDNN_POINTWISE_MUL, {products, value(kScale, CUDNN_DATA_FLOAT)}, CUDNN_DATA_FLOAT, all_);
  matmul(softmax(masked(scores)), v, o);
}

Descriptor SdpaGraph::finish(cudnnHandle_t handle) {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, failure_);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations_);
  graph.set_one(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.finalize("cuDNN's graph of attention");
  return graph;
}

cudnnBackendDescriptor_t SdpaGraph::make(Descriptor tensor, const Dims& dims, const Dims& strides,
                                         cudnnDataType_t type) {
  constexpr int64_t kAlignment = 16;  // bytes
  tensor.set_one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
  tensor.set_one(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment);
  tensor.finalize("a tensor of cuDNN's");
  kept_.push_back(std::move(tensor));
  return kept_.back().get();
}

cudnnBackendDescriptor_t SdpaGraph::tensor(int64_t id, const Dims& dims, const Dims& strides, cudnnDataType_t type) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR, failure_);
  made.set_one(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  return make(std::move(made), dims, strides, type);
}

cudnnBackendDescriptor_t SdpaGraph::value(int64_t id, cudnnDataType_t type) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR, failure_);
  made.set_one(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  made.set_one(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  return make(std::move(made), {1, 1, 1, 1}, {1, 1, 1, 1}, type);
}

cudnnBackendDescriptor_t SdpaGraph::inner(const Dims& dims, cudnnDataType_t type) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR, failure_);
  made.set_one(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, next_id_++);
  made.set_one(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  return make(std::move(made), dims, dense(dims), type);
}

cudnnBackendDescriptor_t SdpaGraph::pointwise(cudnnPointwiseMode_t mode, const Operands& operands, cudnnDataType_t type,
                                              const Dims& dims) {
  const auto y = inner(dims, type);
  Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, failure_);
  how.set_one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  // bf16 results (the weights of values) are computed in fp32.
  how.set_one(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
              type == CUDNN_DATA_BFLOAT16 ? CUDNN_DATA_FLOAT : type);
  how.finalize("a pointwise operation of cuDNN's");
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, failure_);
  operation.link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how.get());
  operation.link(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, operands.x);
  if (operands.b != nullptr) operation.link(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, operands.b);
  if (operands.t != nullptr) operation.link(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, operands.t);
  operation.link(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation.finalize("a pointwise operation of cuDNN's");
  kept_.push_back(std::move(how));
  kept_.push_back(std::move(operation));
  operations_.push_back(kept_.back().get());
  return y;
}

cudnnBackendDescriptor_t SdpaGraph::index(int64_t axis, cudnnBackendDescriptor_t of) {
  const auto y = inner(all_, CUDNN_DATA_INT32);
  Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, failure_);
  how.set_one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX);
  how.set_one(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_INT32);
  how.set_one(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  how.finalize("an index of cuDNN's");
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, failure_);
  operation.link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how.get());
  operation.link(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, of);
  operation.link(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation.finalize("an index of cuDNN's");
  kept_.push_back(std::move(how));
  kept_.push_back(std::move(operation));
  operations_.push_back(kept_.back().get());
  return y;
}

cudnnBackendDescriptor_t SdpaGraph::reduce(cudnnReduceTensorOp_t op, cudnnBackendDescriptor_t x) {
  const auto y = inner(rows_, CUDNN_DATA_FLOAT);
  Descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, failure_);
  how.set_one(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
  how.set_one(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.finalize("a reduction of cuDNN's");
  Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, failure_);
  operation.link(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how.get());
  operation.link(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  operation.link(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  operation.finalize("a reduction of cuDNN's");
  kept_.push_back(std::move(how));
  kept_.push_back(std::move(operation));
  operations_.push_back(kept_.back().get());
  return y;
}

void SdpaGraph::matmul(cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c) {
  Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR, failure_);
  how.set_one(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.finalize("a matrix product of cuDNN's");
  Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, failure_);
  operation.link(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  operation.link(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  operation.link(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  operation.link(CUDNN_ATTR_OPERATION_MATMUL_DESC, how.get());
  operation.finalize("a matrix product of cuDNN's");
  kept_.push_back(std::move(how));
  kept_.push_back(std::move(operation));
  operations_.push_back(kept_.back().get());
}

// Query i sees keys 0 .. i + keys - queries. Where both are as many, the shift is left out: the engines know both
// forms.
cudnnBackendDescriptor_t SdpaGraph::masked(cudnnBackendDescriptor_t scores) {
  auto row = index(2, scores);
  const auto column = index(3, scores);
  if (shape_.keys != shape_.queries) {
    row = pointwise(CUDNN_POINTWISE_ADD, {row, value(kKeys, CUDNN_DATA_INT32)}, CUDNN_DATA_INT32, all_);
    row = pointwise(CUDNN_POINTWISE_SUB, {row, value(kQueries, CUDNN_DATA_INT32)}, CUDNN_DATA_INT32, all_);
  }
  const auto seen = pointwise(CUDNN_POINTWISE_CMP_GE, {row, column}, CUDNN_DATA_BOOLEAN, all_);
  return pointwise(CUDNN_POINTWISE_BINARY_SELECT, {scores, value(kLowest, CUDNN_DATA_FLOAT), seen}, CUDNN_DATA_FLOAT,
                   all_);
}

// The logarithm of the sum is read by nobody; the engines look for it.
cudnnBackendDescriptor_t SdpaGraph::softmax(cudnnBackendDescriptor_t scores) {
  const auto top = reduce(CUDNN_REDUCE_TENSOR_MAX, scores);
  const auto below = pointwise(CUDNN_POINTWISE_SUB, {scores, top}, CUDNN_DATA_FLOAT, all_);
  const auto weights = pointwise(CUDNN_POINTWISE_EXP, {below}, CUDNN_DATA_FLOAT, all_);
  const auto sum = reduce(CUDNN_REDUCE_TENSOR_ADD, weights);
  const auto log = pointwise(CUDNN_POINTWISE_LOG, {sum}, CUDNN_DATA_FLOAT, rows_);
  pointwise(CUDNN_POINTWISE_ADD, {top, log}, CUDNN_DATA_FLOAT, rows_);
  return pointwise(CUDNN_POINTWISE_DIV, {weights, sum}, CUDNN_DATA_BFLOAT16, all_);
}

}  // namespace assay::cuda::vendor
