// The engine's own declarations of cuDNN's backend API, compared with the library's header if it is installed.
#include <gtest/gtest.h>

#include "workloads/train_gpu/cudnn.h"

#if __has_include(<cuda_runtime_api.h>) && __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>

#include <utility>

namespace assay::train_gpu::cudnn {
namespace {

template <class Own, class Header>
void expect_equal(std::initializer_list<std::pair<Own, Header>> values) {
  for (const auto& [own, header] : values) EXPECT_EQ(static_cast<int>(own), static_cast<int>(header));
}

TEST(Cudnn, values_are_those_of_its_header) {
  expect_equal<Element, cudnnDataType_t>({{Element::fp32, CUDNN_DATA_FLOAT},
                                          {Element::int32, CUDNN_DATA_INT32},
                                          {Element::bf16, CUDNN_DATA_BFLOAT16},
                                          {Element::boolean, CUDNN_DATA_BOOLEAN}});
  expect_equal<Pointwise, cudnnPointwiseMode_t>({{Pointwise::add, CUDNN_POINTWISE_ADD},
                                                 {Pointwise::multiply, CUDNN_POINTWISE_MUL},
                                                 {Pointwise::divide, CUDNN_POINTWISE_DIV},
                                                 {Pointwise::subtract, CUDNN_POINTWISE_SUB},
                                                 {Pointwise::exp, CUDNN_POINTWISE_EXP},
                                                 {Pointwise::log, CUDNN_POINTWISE_LOG},
                                                 {Pointwise::identity, CUDNN_POINTWISE_IDENTITY},
                                                 {Pointwise::at_least, CUDNN_POINTWISE_CMP_GE},
                                                 {Pointwise::index, CUDNN_POINTWISE_GEN_INDEX},
                                                 {Pointwise::select, CUDNN_POINTWISE_BINARY_SELECT}});
  expect_equal<Reduction, cudnnReduceTensorOp_t>(
      {{Reduction::add, CUDNN_REDUCE_TENSOR_ADD}, {Reduction::max, CUDNN_REDUCE_TENSOR_MAX}});
  expect_equal<Kind, cudnnBackendDescriptorType_t>(
      {{Kind::pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR},
       {Kind::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR},
       {Kind::engine_choice, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR},
       {Kind::heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR},
       {Kind::plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR},
       {Kind::pointwise_operation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR},
       {Kind::graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR},
       {Kind::pointers, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR},
       {Kind::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR},
       {Kind::product, CUDNN_BACKEND_MATMUL_DESCRIPTOR},
       {Kind::product_operation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR},
       {Kind::reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR},
       {Kind::reduction_operation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR},
       {Kind::view_operation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR},
       {Kind::device, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR}});
  expect_equal<Type, cudnnBackendAttributeType_t>({{Type::handle, CUDNN_TYPE_HANDLE},
                                                   {Type::element, CUDNN_TYPE_DATA_TYPE},
                                                   {Type::boolean, CUDNN_TYPE_BOOLEAN},
                                                   {Type::int64, CUDNN_TYPE_INT64},
                                                   {Type::pointer, CUDNN_TYPE_VOID_PTR},
                                                   {Type::heuristic, CUDNN_TYPE_HEUR_MODE},
                                                   {Type::numerical_note, CUDNN_TYPE_NUMERICAL_NOTE},
                                                   {Type::pointwise, CUDNN_TYPE_POINTWISE_MODE},
                                                   {Type::descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR},
                                                   {Type::reduction, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
                                                   {Type::character, CUDNN_TYPE_CHAR}});
  EXPECT_EQ(kHeuristics[0].mode, static_cast<int>(CUDNN_HEUR_MODE_A));
  EXPECT_EQ(kHeuristics[1].mode, static_cast<int>(CUDNN_HEUR_MODE_FALLBACK));
  EXPECT_EQ(kNotDeterministic, static_cast<int>(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
  EXPECT_GE(kNotes, static_cast<int>(CUDNN_NUMERICAL_NOTE_TYPE_COUNT));
}

TEST(Cudnn, attributes_are_those_of_its_header) {
  expect_equal<Attribute, cudnnBackendAttributeName_t>(
      {{Attribute::pointwise_mode, CUDNN_ATTR_POINTWISE_MODE},
       {Attribute::pointwise_precision, CUDNN_ATTR_POINTWISE_MATH_PREC},
       {Attribute::pointwise_axis, CUDNN_ATTR_POINTWISE_AXIS},
       {Attribute::heuristic_mode, CUDNN_ATTR_ENGINEHEUR_MODE},
       {Attribute::heuristic_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH},
       {Attribute::heuristic_results, CUDNN_ATTR_ENGINEHEUR_RESULTS},
       {Attribute::heuristic_device, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP},
       {Attribute::choice_engine, CUDNN_ATTR_ENGINECFG_ENGINE},
       {Attribute::plan_choice, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG},
       {Attribute::plan_workspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE},
       {Attribute::plan_device, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP},
       {Attribute::pointwise_description, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR},
       {Attribute::pointwise_x, CUDNN_ATTR_OPERATION_POINTWISE_XDESC},
       {Attribute::pointwise_b, CUDNN_ATTR_OPERATION_POINTWISE_BDESC},
       {Attribute::pointwise_y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
       {Attribute::pointwise_t, CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
       {Attribute::graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS},
       {Attribute::tensor_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT},
       {Attribute::tensor_element, CUDNN_ATTR_TENSOR_DATA_TYPE},
       {Attribute::tensor_sizes, CUDNN_ATTR_TENSOR_DIMENSIONS},
       {Attribute::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES},
       {Attribute::tensor_id, CUDNN_ATTR_TENSOR_UNIQUE_ID},
       {Attribute::tensor_virtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL},
       {Attribute::tensor_by_value, CUDNN_ATTR_TENSOR_IS_BY_VALUE},
       {Attribute::pointers_ids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS},
       {Attribute::pointers_data, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS},
       {Attribute::pointers_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE},
       {Attribute::engine_index, CUDNN_ATTR_ENGINE_GLOBAL_INDEX},
       {Attribute::engine_note, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE},
       {Attribute::product_precision, CUDNN_ATTR_MATMUL_COMP_TYPE},
       {Attribute::product_a, CUDNN_ATTR_OPERATION_MATMUL_ADESC},
       {Attribute::product_b, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
       {Attribute::product_c, CUDNN_ATTR_OPERATION_MATMUL_CDESC},
       {Attribute::product_description, CUDNN_ATTR_OPERATION_MATMUL_DESC},
       {Attribute::reduction_operator, CUDNN_ATTR_REDUCTION_OPERATOR},
       {Attribute::reduction_precision, CUDNN_ATTR_REDUCTION_COMP_TYPE},
       {Attribute::reduction_x, CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
       {Attribute::reduction_y, CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
       {Attribute::reduction_description, CUDNN_ATTR_OPERATION_REDUCTION_DESC},
       {Attribute::view_x, CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
       {Attribute::view_y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC},
       {Attribute::device_words, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION}});
  EXPECT_EQ(static_cast<int>(Attribute::plan_handle), 400);
  EXPECT_EQ(static_cast<int>(Attribute::graph_handle), 800);
}

}  // namespace
}  // namespace assay::train_gpu::cudnn
#else
TEST(Cudnn, values_are_those_of_its_header) { GTEST_SKIP() << "cudnn_graph.h is not here"; }
#endif
