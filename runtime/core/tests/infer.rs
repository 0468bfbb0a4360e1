//! Shape inference, case by case.
//!
//! A case is one line: the op and its version, attributes, inputs, and either the outputs or a part of the error.
//! `f32[2,?]` is a shape with an unknown size, `f32[..]` one of unknown rank, `i64=2,-1` a list whose elements are
//! known, `i64:3` a scalar whose value is known, and `_` an input that is left out.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read fails")]

use oarlock_core::infer::{InferenceRequest, PartialDim, PartialDims, TensorFact, infer_facts};
use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result, schema};

const SHAPE_CASES: &str = "
    Relu 14 f32[2,?] -> f32[2,?]
    Relu 14 f32[..] -> f32[..]
    Add 14 f32[2,1,?] f32[3,4] -> f32[2,3,4]
    Add 14 f32[?] f32[1] -> f32[?]
    Add 14 f32[..] f32[1] -> f32[..]
    Add 14 f32[0,3] f32[1,3] -> f32[0,3]
    Add 6 (broadcast=1 axis=1) f32[2,3,4] f32[3] -> f32[2,3,4]
    Equal 19 f32[2] f32[2] -> bool[2]
    Where 16 bool[4,1] f32[3] f32[] -> f32[4,3]
    Max 8 f32[2,1] f32[3] f32[1,1] -> f32[2,3]
    Cast 21 (to=10) f32[2,?] -> f16[2,?]
    Cast 1 (to=DOUBLE) f32[2] -> f64[2]
    QuantizeLinear 21 (output_dtype=3) f32[2,3] f32[] -> i8[2,3]
    QuantizeLinear 13 (axis=-1) f32[2,3] f32[3] u8[3] -> u8[2,3]
    DequantizeLinear 21 (axis=1 block_size=2) i8[2,5] f16[2,3] -> f16[2,5]
    ReduceSum 13 (keepdims=0) f32[2,3,4] i64=-1,0 -> f32[3]
    ReduceSum 13 (noop_with_empty_axes=1) f32[2,3] -> f32[2,3]
    ReduceSum 13 (keepdims=0) f32[2,3] -> f32[]
    ReduceSum 13 (keepdims=0) f32[2,3,4] i64[2] -> f32[?]
    ReduceSum 13 f32[2,3,4] i64[?] -> f32[?,?,?]
    ReduceMean 11 (axes=[1]) f32[2,3] -> f32[2,1]
    ArgMax 13 (axis=1 keepdims=0) f32[2,3,4] -> i64[2,4]
    MatMul 13 f32[5,1,2,3] f32[4,3,6] -> f32[5,4,2,6]
    MatMul 13 f32[3] f32[3] -> f32[]
    MatMul 13 f32[?,3] f32[?,?] -> f32[?,?]
    Gemm 13 (transA=1) f32[3,2] f32[3,4] f32[4] -> f32[2,4]
    Einsum 12 (equation=bij,bjk->bik) f32[2,3,4] f32[2,4,5] -> f32[2,3,5]
    Einsum 12 (equation=...ij->...ji) f32[7,2,3] -> f32[7,3,2]
    Einsum 12 (equation=ij,jk) f32[2,3] f32[3,4] -> f32[2,4]
    Reshape 21 f32[2,?,4] i64=0,-1,2 -> f32[2,?,2]
    Reshape 21 f32[?,3,4] i64=0,-1 -> f32[?,12]
    Reshape 21 f32[2,3] i64[4] -> f32[?,?,?,?]
    Reshape 21 (allowzero=1) f32[0,3] i64=3,0 -> f32[3,0]
    Reshape 21 f32[0,3] i64=-1,3 -> f32[0,3]
    Flatten 13 (axis=-1) f32[2,3,4] -> f32[6,4]
    Squeeze 13 f32[1,3,1] -> f32[3]
    Squeeze 13 f32[1,?] i64=0 -> f32[?]
    Squeeze 13 f32[1,?] -> f32[..]
    Unsqueeze 13 f32[3] i64=0,-1 -> f32[1,3,1]
    Expand 13 f32[3,1] i64=2,1,6 -> f32[2,3,6]
    Expand 13 f32[3,1] i64[3] -> f32[?,3,?]
    Transpose 21 (perm=[2,0,1]) f32[2,3,4] -> f32[4,2,3]
    Transpose 21 f32[2,3] -> f32[3,2]
    Concat 13 (axis=1) f32[?,3] f32[2,4] -> f32[2,7]
    Concat 13 (axis=0) f32[1,3] f32[?,3] -> f32[?,3]
    Split 18 (num_outputs=3 axis=1) f32[2,7] -> f32[2,3] f32[2,3] f32[2,1]
    Split 13 f32[6] i64=1,5 -> f32[1] f32[5]
    Split 11 f32[6,2] -> f32[3,2] f32[3,2]
    Tile 13 f32[2,3] i64=2,0 -> f32[4,0]
    Slice 13 f32[10,5] i64=8,-1 i64=-9223372036854775808,9223372036854775807 _ i64=-3,2 -> f32[3,1]
    Slice 13 f32[4,5] i64=-9 i64=-9 _ i64=-1 -> f32[1,5]
    Slice 13 f32[4,5] i64[1] i64[1] i64=1 -> f32[4,?]
    Pad 13 f32[2,3] i64=1,0,-1,2 -> f32[2,5]
    Pad 21 f32[2,3] i64=1,1 _ i64=-1 -> f32[2,5]
    Shape 21 (start=1) f32[2,?,4] -> i64[2]
    Gather 13 (axis=1) f32[2,3,4] i64[5,6] -> f32[2,5,6,4]
    GatherND 13 (batch_dims=1) f32[2,3,4] i64[2,5,1] -> f32[2,5,4]
    GatherND 13 f32[2,3,4] i64[5,?] -> f32[..]
    ScatterND 18 f32[4,5] i64[3,1] f32[3,5] -> f32[4,5]
    OneHot 11 (axis=0) i64[2,3] i64:7 f32[2] -> f32[7,2,3]
    TopK 11 f32[2,5] i64=3 -> f32[2,3] i64[2,3]
    TopK 11 f32[2,5] i64[1] -> f32[2,?] i64[2,?]
    NonZero 13 f32[2,3] -> i64[2,?]
    Unique 11 (axis=1) f32[2,3] -> f32[2,?] i64[?] i64[3] i64[?]
    Compress 11 f32[2,3] bool[6] -> f32[?]
    NonMaxSuppression 11 f32[1,6,4] f32[1,1,6] -> i64[?,3]
    ConstantOfShape 24 i64=2,0 -> f32[2,0]
    Range 11 i64:10 i64:3 i64:-3 -> i64[3]
    Range 11 f32[] f32[] f32[] -> f32[?]
    RandomNormal 22 (shape=[2,3] dtype=11) -> f64[2,3]
    EyeLike 22 (dtype=7) f32[2,3] -> i64[2,3]
    Conv 22 (strides=[2,2] pads=[1,1,1,1]) f32[?,3,8,9] f32[4,3,3,3] f32[4] -> f32[?,4,4,5]
    Conv 22 (auto_pad=SAME_UPPER strides=[3,2] group=3) f32[1,3,8,9] f32[6,1,3,3] -> f32[1,6,3,5]
    Conv 22 (dilations=[2]) f32[1,1,?] f32[1,1,3] -> f32[1,1,?]
    ConvTranspose 22 (strides=[2,2] output_padding=[1,0] group=2) f32[1,4,3,3] f32[4,3,3,3] -> f32[1,6,8,7]
    MaxPool 22 (kernel_shape=[3] strides=[2] ceil_mode=1) f32[1,1,6] -> f32[1,1,3] i64[1,1,3]
    AveragePool 22 (kernel_shape=[1] strides=[2] ceil_mode=1) f32[1,1,2] -> f32[1,1,1]
    MaxPool 22 (kernel_shape=[2,3] strides=[2,3] ceil_mode=1) f32[1,1,1,2] -> f32[1,1,1,1] i64[1,1,1,1]
    GlobalAveragePool 22 f32[2,3,?,5] -> f32[2,3,1,1]
    Resize 19 f32[1,3,4,4] _ f32=1,1,0.5,2 -> f32[1,3,2,8]
    Resize 19 (coordinate_transformation_mode=tf_crop_and_resize) f32[1,6] f32=0,0.2,1,0.8 f32=1,2 -> f32[1,12]
    Resize 19 (keep_aspect_ratio_policy=not_larger axes=[2,3]) f32[1,1,2,4] _ _ i64=7,8 -> f32[1,1,4,8]
    Resize 19 f32[1,1,?,4] _ f32[4] -> f32[?,?,?,?]
    Upsample 9 f32[1,1,2,2] f32=1,1,2,3 -> f32[1,1,4,6]
    DepthToSpace 13 (blocksize=2) f32[1,8,?,3] -> f32[1,2,?,6]
    GridSample 22 f32[1,3,8,8] f32[1,5,6,2] -> f32[1,3,5,6]
    AffineGrid 20 f32[2,2,3] i64=2,3,4,5 -> f32[2,4,5,2]
    Col2Im 18 f32[1,8,9] i64=4,4 i64=2,2 -> f32[1,2,4,4]
    RoiAlign 22 (output_height=3 output_width=4) f32[1,2,9,9] f32[7,4] i64[7] -> f32[7,2,3,4]
    BatchNormalization 15 f32[2,3,4] f32[3] f32[3] f32[3] f32[3] -> f32[2,3,4]
    LayerNormalization 17 (axis=1) f32[2,3,4] f32[3,4] -> f32[2,3,4] f32[2,1,1] f32[2,1,1]
    LSTM 22 (hidden_size=5 direction=bidirectional) f32[7,2,3] f32[2,20,3] f32[2,20,5] -> f32[7,2,2,5] f32[2,2,5] f32[2,2,5]
    GRU 22 (layout=1) f32[2,7,3] f32[1,15,3] f32[1,15,5] -> f32[2,7,1,5] f32[2,1,5]
    Attention 24 f32[2,8,4,16] f32[2,2,6,16] f32[2,2,6,32] -> f32[2,8,4,32] f32[2,2,6,16] f32[2,2,6,32]
    Attention 24 (q_num_heads=4 kv_num_heads=2) f32[1,3,32] f32[1,5,16] f32[1,5,8] -> f32[1,3,16]
    RotaryEmbedding 23 f32[2,4,3,8] f32[50,4] f32[50,4] i64[2,3] -> f32[2,4,3,8]
    DFT 20 (onesided=1) f32[1,10,1] -> f32[1,6,2]
    STFT 17 f32[1,128,1] i64:8 f32[16] -> f32[1,15,9,2]
    STFT 17 f32[3,128] i64:8 f32[16] -> f32[3,15,9,2]
    HannWindow 17 i64:9 -> f32[9]
    SoftmaxCrossEntropyLoss 13 (reduction=none) f32[2,5,3] i64[2,3] -> f32[2,3] f32[2,5,3]
    StringSplit 20 string[2] -> string[2,?] i64[2]
    ai.onnx.preview.training:Adam 1 f32[] i64[] f32[2] f32[3] f32[2] f32[3] f32[2] f32[3] f32[2] f32[3] -> f32[2] f32[3] f32[2] f32[3] f32[2] f32[3]
    oarlock:Abs 1 c64[2,?] -> f32[2,?]
    oarlock:Add 1 c128[2,1] c128[3] -> c128[2,3]
    oarlock:Complex 1 f64[2] f64[1] -> c128[2]
    oarlock:Eigenvectors 1 c64[2,3,3] -> c64[2,3,3]
    oarlock:Eigh 1 c64[2,3,3] -> f32[2,3] c64[2,3,3]
    oarlock:Eigvalsh 1 c64[2,3,3] -> f32[2,3]
    oarlock:Qr 1 (complete=1) f64[4,2] -> f64[4,4] f64[4,2]
    oarlock:SlogDet 1 c128[5,2,2] -> c128[5] f64[5]
    oarlock:DynamicTimeWarping 1 f32[1,3,?] -> i32[2,?]
    oarlock:MurmurHash3 1 string[2,?] -> u32[2,?]
    oarlock:Tokenizer 1 (tokenexp=.) string[2,?] string[1] -> string[2,?,?]
    oarlock:MurmurHash3 1 (positive=0) f64[3] -> i32[3]
    oarlock:Solve 1 f32[2,3,3] f32[2,3,4] -> f32[2,3,4]
    oarlock:Svd 1 f32[?,4,3] -> f32[?,4,3] f32[?,3] f32[?,3,3]
    oarlock:Svdvals 1 c128[2,4,3] -> f64[2,3]
    oarlock:Atan2 1 f32[2,1] f32[3] -> f32[2,3]
    oarlock:FloorDivide 1 i8[4] i8[1] -> i8[4]
    oarlock:FusedElementwise 1 (operands=[2,0,1] steps=Add) f32[2,1] f32[3] -> f32[2,3]
    oarlock:RandomSample 1 (distribution=bits dtype=12) f32[2,3] u64[2] -> u32[2,3]
    oarlock:IsFinite 1 f16[2,?] -> bool[2,?]
    oarlock:ShiftRight 1 u8[4] u8[4] -> u8[4]
    oarlock:Sgd 1 f32[] f32[2,3] f32[2,3] -> f32[2,3]
    oarlock:Conv 1 (strides=[2,2] pads=[1,1,1,1]) f32[?,8,9,3] f32[4,3,3,3] f32[4] f32[?,4,5,4] -> f32[?,4,5,4]
    oarlock:Conv 1 (dilations=[2] group=2) f32[1,?,4] f32[6,2,3] -> f32[1,?,6]
    oarlock:Conv 1 f32[1,8,8,3] f32[..] -> f32[1,?,?,?]
    oarlock:ConvTranspose 1 (strides=[2,2] pads=[1,1,1,1] output_padding=[1,0]) f32[?,8,9,6] f32[6,2,3,3] f32[2] -> f32[?,16,17,2]
    oarlock:ConvTranspose 1 (group=2 strides=[2]) f32[1,?,6] f32[6,2,2] -> f32[1,?,4]
    oarlock:MaxPool 1 (kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]) f32[1,112,112,64] -> f32[1,56,56,64]
    oarlock:AveragePool 1 (kernel_shape=[2] strides=[2] ceil_mode=1) f32[?,5,7] -> f32[?,3,7]
    oarlock:MatMul 1 (transA=1 transB=1) f32[5,1,3,2] f32[4,6,3] f32[2,1] f32[5,4,2,6] -> f32[5,4,2,6]
    oarlock:QuantizedConv 1 (strides=[2,2] pads=[1,1,1,1]) u8[?,8,9,3] i8[4,3,3,3] f32[4] i32[4] u8[?,4,5,4] -> u8[?,4,5,4]
    oarlock:QuantizedConv 1 (group=2) i8[1,?,4] i8[6,2,1] f32[] -> i8[1,?,6]
    oarlock:BlockMatMul 1 (block_size=32) f32[2,?,70] u4[5,70] f32[5,3] u4[5,3] -> f32[2,?,5]
    oarlock:ByteMap 1 u8[2,?,70] i8[256] -> i8[2,?,70]
    oarlock:QuantizedMatMul 1 (transB=1) i8[2,?,3] i8[5,3] f32[1] _ i8[2,?,5] -> i8[2,?,5]
    oarlock:DequantizedConv 1 (strides=[2,2] pads=[1,1,1,1]) u8[?,8,9,3] i8[4,3,3,3] f32[] f32[4] u8[] i8[4] i32[4] f32[4] f32[?,4,5,4] -> f32[?,4,5,4]
    oarlock:DequantizedConv 1 (group=2) i8[1,?,4] u8[6,2,1] f32[1] f32[] -> f32[1,?,6]
    oarlock:DequantizedMatMul 1 u8[2,?,3] i8[3,5] f32[] f32[5] u8[] i8[1] _ f32[5] f32[2,?,5] -> f32[2,?,5]
    oarlock:DynamicQuantizedLSTM 1 (direction=bidirectional hidden_size=5) f32[7,?,3] i8[2,3,20] u8[2,5,20] _ _ _ _ _ f32[2] i8[2] f32[2,20] u8[2,20] -> f32[7,2,?,5] f32[2,?,5] f32[2,?,5]
    oarlock:SkipLayerNormalization 1 f32[2,3,4] f32[2,3,4] f32[4] f32[4] _ -> f32[2,3,4] f32[2,3,4]
    ai.onnx.ml:LinearClassifier 1 (coefficients=[1.,2.,3.,4.,5.] intercepts=[1.,2.] classlabels_ints=[3,4]) f32[?,2] -> i64[?] f32[?,2]
    ai.onnx.ml:LinearClassifier 1 (coefficients=[1.,2.] intercepts=[1.] classlabels_ints=[3,4]) f32[7,2] -> i64[7] f32[7,2]
    ai.onnx.ml:LinearClassifier 1 (coefficients=[1.,2.] intercepts=[1.]) f32[7,2] -> i64[7] f32[7,1]
    ai.onnx.ml:LinearClassifier 1 (coefficients=[1.,2.] intercepts=[1.,2.] classlabels_ints=[3,4,5]) f32[?,?] -> i64[?] f32[?,2]
    ai.onnx.ml:LinearRegressor 1 (coefficients=[1.,2.,3.,4.,5.] targets=2) f32[7,2] -> f32[7,2]
";

const ERROR_CASES: &str = "
    Add 14 f32[2,3] f32[2] -> input 1 (B): expected shapes that are equal or 1 from the last dimension on
    Add 14 f32[-1] f32[2] -> input 0 (A): expected sizes of at least 0, found [-1]
    Softmax 13 (axis=2) f32[2,3] -> attribute `axis`: expected an axis from -2 to before 2, found 2
    MatMul 13 f32[2,3] f32[4,5] -> input 1 (B): expected the last dimension but one to be 3
    oarlock:Conv 1 f32[1,8,8,3] f32[4,2,3,3] -> input 0 (X): expected 2 channels for each of 1 groups, found 3 channels
    oarlock:Conv 1 f32[1,8,8,3] f32[4,3,3,3] f32[3] -> input 2 (B): expected the shape [4], found [3]
    oarlock:Conv 1 f32[1,8,8,3] f32[4,3,3,3] _ f32[1,8,8,4] -> input 3 (Z): expected the shape [1, 6, 6, 4], found [1, 8, 8, 4]
    oarlock:MatMul 1 (transB=1) f32[2,3] f32[3,4] -> input 1 (B): expected 3 rows, as many as A has columns, found 4
    oarlock:MatMul 1 f32[2,3] f32[3,4] _ f32[4] -> input 3 (Z): expected the shape [2, 4], found [4]
    oarlock:QuantizedConv 1 u8[1,8,8,3] i8[4,3,3,3] f32[3] -> input 2 (scale): expected one element, or 4, found [3]
    oarlock:QuantizedConv 1 u8[1,8,8,3] i8[4,3,3,3] f32[1] _ u8[1,8,8,4] -> input 4 (Z): expected the shape [1, 6, 6, 4], found [1, 8, 8, 4]
    oarlock:BlockMatMul 1 (block_size=32) f32[2,64] u4[5,64] f32[5,3] -> input 2 (scale): expected the shape [5, 2], found [5, 3]
    oarlock:ByteMap 1 u8[2,3] u8[255] -> input 1 (table): expected the shape [256], found [255]
    oarlock:QuantizedMatMul 1 u8[2,3] i8[4,3] f32[] -> input 1 (W): expected 3 rows, as many as A has columns, found 4
    oarlock:DequantizedConv 1 u8[1,8,8,3] u8[4,3,3,3] f32[] f32[3] -> input 3 (w_scale): expected one element, or 4, found [3]
    oarlock:DequantizedMatMul 1 u8[2,3] i8[3,4] f32[2] f32[] -> input 2 (x_scale): expected one element, found [2]
    oarlock:DequantizedMatMul 1 u8[2,3] i8[3,4] f32[] f32[] _ i8[2] -> input 5 (w_zero): expected one element, or 4, found [2]
    oarlock:DequantizedMatMul 1 u8[2,3] i8[4,4] f32[] f32[] -> input 1 (W): expected 3 rows, as many as A has columns, found 4
    oarlock:DequantizedMatMul 1 u8[2,3] i8[3,4] f32[] f32[] _ _ i32[3] -> input 6 (B): expected the shape [4], found [3]
    oarlock:DynamicQuantizedLSTM 1 (hidden_size=5) f32[7,1,3] i8[1,3,20] i8[1,5,20] _ _ _ _ _ f32[2] i8[1] f32[1] i8[1] -> input 8 (W_scale): expected the shape [1], found [2]
    oarlock:DynamicQuantizedLSTM 1 (hidden_size=6) f32[7,1,3] i8[1,3,20] i8[1,5,20] _ _ _ _ _ f32[1] i8[1] f32[1] i8[1] -> input 2 (R): expected 6 rows, as `hidden_size` says, found 5
    oarlock:SkipLayerNormalization 1 f32[2,3] f32[2,3] f32[2] -> input 2 (Scale): expected the shape [3], found [2]
    ai.onnx.ml:LinearClassifier 1 (coefficients=[1.,2.,3.] classlabels_ints=[3,4]) f32[?,2] -> expected at least one for each of 2 features and 2 results, found 3
    ai.onnx.ml:LinearClassifier 1 (coefficients=[1.,2.] intercepts=[1.,2.] classlabels_ints=[3]) f32[?,?] -> attribute `intercepts`: expected at most one for each of 1 classes
    ai.onnx.ml:LinearClassifier 1 (coefficients=[1.,2.] intercepts=[1.] classlabels_ints=[3,4,5]) f32[?,?] -> attribute `intercepts`
    ai.onnx.ml:LinearClassifier 1 (coefficients=[1.,2.]) f32[?,?] -> expected labels of classes, found none
    ai.onnx.ml:LinearRegressor 1 (coefficients=[1.,2.,3.] targets=2) f32[7,2] -> attribute `coefficients`: expected at least one
    ai.onnx.ml:LinearRegressor 1 (coefficients=[1.,2.,3.] intercepts=[1.]  targets=2) f32[7,?] -> attribute `intercepts`: expected none or one
    Gemm 13 f32[2,3] f32[3,4] f32[5] -> input 2 (C): expected a shape that repeats to [2, 4], found [5]
    Einsum 12 (equation=ij,jk->iz) f32[2,3] f32[3,4] -> attribute `equation`: expected only letters of the inputs
    Reshape 21 f32[2,3] i64=4,-1 -> input 1 (shape): expected a -1 that can be a whole number
    Reshape 21 f32[2,3] i64=-1,-1 -> at most one -1
    Reshape 21 f32[2,3] i64=7 -> as many elements
    Squeeze 13 f32[2,3] i64=0 -> input 0 (data): expected size 1 in dimension 0
    Unsqueeze 13 f32[2] i64=0,0 -> input 1 (axes): expected every axis once
    Transpose 21 (perm=[0,0]) f32[2,3] -> attribute `perm`
    Concat 13 (axis=1) f32[2,3] f32[3,3] -> input 1 (inputs): expected the shape [2, ?], found [3, 3]
    Split 18 (num_outputs=4) f32[5] -> attribute `num_outputs`
    Split 13 f32[5] i64=2,2 -> input 1 (split): expected sizes of at least 0 that add up to 5
    Tile 13 f32[2] i64=-1 -> input 1 (repeats)
    Tile 13 f32[9223372036854775807] i64=2 -> input 1 (repeats): expected sizes that 64 bits can hold
    Pad 13 f32[2] i64=-3,0 -> input 1 (pads): expected pads that leave a size of at least 0
    Pad 13 f32[2] i64=9223372036854775807,1 -> input 1 (pads): expected sizes that 64 bits can hold
    Pad 13 f32[2] i64=4611686018427387904,0 -> output 0: expected a shape that memory can hold
    Slice 13 f32[4] i64=0 i64=2 _ i64=0 -> input 4 (steps): expected steps other than 0
    Gather 13 (axis=3) f32[2] i64[1] -> attribute `axis`
    TopK 11 f32[3] i64=4 -> input 1 (K): expected 0 to 3
    ScatterElements 18 f32[3] i64[2] f32[3] -> input 2 (updates): expected the shape [2], found [3]
    ConstantOfShape 24 i64=2,-2 -> input 0 (input): expected sizes of at least 0
    Range 11 i64:0 i64:5 i64:0 -> input 2 (delta): expected steps other than 0
    Conv 22 f32[1,3,8,8] f32[4,2,3,3] -> input 0 (X): expected 2 channels for each of 1 groups, found 3 channels
    Conv 22 f32[1,1,2] f32[1,1,3] -> input 0 (X): expected at least 3 in spatial dimension 0
    Conv 22 (strides=[0]) f32[1,1,4] f32[1,1,3] -> attribute `strides`: expected 1 numbers of at least 1
    MaxPool 22 (kernel_shape=[2] auto_pad=UP) f32[1,1,4] -> attribute `auto_pad`
    DepthToSpace 13 (blocksize=3) f32[1,8,2,3] -> input 0 (input)
    BatchNormalization 15 f32[2,3,4] f32[3] f32[2] f32[3] f32[3] -> input 2 (B): expected the shape [3], found [2]
    LSTM 22 (hidden_size=5) f32[7,2,3] f32[1,20,4] f32[1,20,5] -> input 1 (W): expected the shape [1, 20, 3]
    Attention 24 f32[2,8,4,16] f32[2,3,6,16] f32[2,3,6,32] -> input 1 (K)
    DFT 20 f32[1,10,1] _ i64:2 -> input 2 (axis)
    BitCast 26 (to=11) f32[2] -> attribute `to`: expected a dtype of numbers of 32 bits, found f64
    NegativeLogLikelihoodLoss 22 f32[2,5] i64[3] -> input 1 (target): expected the shape [2], found [3]
    ai.onnx.preview.training:Adam 1 f32[] i64[] f32[2] f32[2] f32[2] -> expected tensors, gradients and 2 kinds of states
";

fn parse_fact(text: &str) -> Option<TensorFact> {
    let at = text.find(['[', '=', ':'])?;
    let dtype: Dtype = text[..at].parse().unwrap();
    let inner = &text[at + 1..];
    let constant = |dims: &[i64]| {
        let bytes = inner.split(',').flat_map(|number| match dtype {
            Dtype::F32 => number.parse::<f32>().unwrap().to_ne_bytes().to_vec(),
            _ => number.parse::<i64>().unwrap().to_ne_bytes().to_vec(),
        });
        TensorFact::from_value(Constant::new(dtype, dims, bytes.collect::<Vec<u8>>()).unwrap())
    };
    Some(match &text[at..=at] {
        "=" => constant(&[inner.split(',').count() as i64]),
        ":" => constant(&[]),
        _ => match inner.trim_end_matches(']') {
            ".." => TensorFact::from_dtype(dtype),
            "" => TensorFact::from_shape(dtype, &[]),
            dims => {
                let dim = |size: &str| size.parse().map_or(PartialDim::Unknown, PartialDim::Known);
                TensorFact {
                    dims: Some(dims.split(',').map(dim).collect::<PartialDims>()),
                    ..TensorFact::from_dtype(dtype)
                }
            }
        },
    })
}

fn parse_attribute(text: &str) -> (String, Attribute) {
    let (name, value) = text.split_once('=').unwrap();
    let value = match (value.strip_prefix('['), value.parse()) {
        (Some(list), _) if list.contains('.') => Attribute::Floats(
            list.trim_end_matches(']').split(',').map(|float| float.parse().unwrap()).collect(),
        ),
        (Some(list), _) => {
            Attribute::Ints(list.trim_end_matches(']').split(',').map(|int| int.parse().unwrap()).collect())
        }
        (None, Ok(int)) => Attribute::Int(int),
        (None, Err(_)) => Attribute::String(value.into()),
    };
    (name.into(), value)
}

/// Infers the outputs for the left side of a case.
fn infer_case(call: &str, output_count: usize) -> Result<Vec<TensorFact>> {
    let (head, rest) = call.split_once(' ').unwrap();
    let (version, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (domain, op) = head.split_once(':').unwrap_or(("", head));
    let (attributes, operands) = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').unwrap(),
        None => ("", rest),
    };
    let attributes: Attributes = attributes.split_whitespace().map(parse_attribute).collect();
    let inputs: Vec<_> = operands.split_whitespace().map(parse_fact).collect();
    let schema = schema::find_schema(domain, op, version.parse().unwrap())?;
    let dtypes: Vec<_> = inputs.iter().map(|input| input.as_ref().map(|fact| fact.dtype)).collect();
    let bound = schema.check_call(&attributes, &dtypes)?;
    let last = schema.outputs.len() - 1;
    let outputs: Vec<_> = (0..output_count).map(|at| bound.outputs[at.min(last)]).collect();
    infer_facts(&InferenceRequest {
        domain,
        op,
        version: schema.since_version,
        attributes: &bound.attributes,
        inputs: &inputs,
        outputs: &outputs,
    })
}

fn parse_cases(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| line.rsplit_once(" -> ").unwrap())
}

#[test]
fn outputs_follow_from_inputs_and_attributes() {
    for (call, expected) in parse_cases(SHAPE_CASES) {
        let expected: Vec<_> = expected.split(' ').map(|text| parse_fact(text).unwrap()).collect();
        let found = infer_case(call, expected.len()).unwrap_or_else(|error| panic!("{call}: {error}"));
        let without_values: Vec<_> =
            found.into_iter().map(|fact| TensorFact { value: None, ..fact }).collect();
        assert_eq!(without_values, expected, "{call}");
    }
}

#[test]
fn inference_errors_name_the_operand_and_the_expectation() {
    for (call, expected) in parse_cases(ERROR_CASES) {
        let error = infer_case(call, 1).expect_err(call).to_string();
        assert!(error.contains(expected), "{call}: {error}");
    }
}

#[test]
fn what_is_known_of_a_shape_is_a_value() {
    let value = |call| infer_case(call, 1).unwrap()[0].value.as_ref().map(|value| value.to_ints().unwrap());
    assert_eq!(value("Shape 21 (start=-2) f32[?,3,4]"), Some(vec![3, 4]));
    assert_eq!(value("Shape 21 f32[?,3]"), None);
    assert_eq!(value("Size 21 f32[5,3]"), Some(vec![15]));
    assert_eq!(value("Constant 21 (value_ints=[1,2])"), Some(vec![1, 2]));
}

#[test]
fn every_op_on_tensors_has_a_rule_in_every_version() {
    const OPS_WITHOUT_RULES: &[&str] = &[
        "If",
        "Loop",
        "Scan",
        "Gradient",
        "Optional",
        "ConcatFromSequence",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SequenceMap",
        "SplitToSequence",
    ];
    for schema in schema::all_schemas().unwrap() {
        let schema = schema.unwrap();
        if schema.domain == "ai.onnx.ml" || OPS_WITHOUT_RULES.contains(&schema.name) {
            continue;
        }
        let call = InferenceRequest {
            domain: schema.domain,
            op: schema.name,
            version: schema.since_version,
            attributes: &Attributes::new(),
            inputs: &[],
            outputs: &[],
        };
        if let Err(error) = infer_facts(&call) {
            assert_ne!(error.kind(), oarlock_core::ErrorKind::Unimplemented, "{error}");
        }
    }
}
