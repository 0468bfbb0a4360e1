// Generated from `runtime/model/protos/paddle.proto` by `cargo xtask generate`. Do not edit.

#![expect(missing_docs, reason = "`runtime/model/protos/paddle.proto` says what everything means")]

#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProgramDesc {
    #[prost(message, repeated, tag = "1")]
    pub blocks: ::prost::alloc::vec::Vec<BlockDesc>,
    #[prost(message, optional, tag = "4")]
    pub version: ::core::option::Option<ProgramVersion>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ProgramVersion {
    #[prost(int64, optional, tag = "1")]
    pub version: ::core::option::Option<i64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockDesc {
    #[prost(int32, optional, tag = "1")]
    pub idx: ::core::option::Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub parent_idx: ::core::option::Option<i32>,
    #[prost(message, repeated, tag = "3")]
    pub vars: ::prost::alloc::vec::Vec<VarDesc>,
    #[prost(message, repeated, tag = "4")]
    pub ops: ::prost::alloc::vec::Vec<OpDesc>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpDesc {
    #[prost(message, repeated, tag = "1")]
    pub inputs: ::prost::alloc::vec::Vec<op_desc::Var>,
    #[prost(message, repeated, tag = "2")]
    pub outputs: ::prost::alloc::vec::Vec<op_desc::Var>,
    #[prost(string, optional, tag = "3")]
    pub r#type: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "4")]
    pub attrs: ::prost::alloc::vec::Vec<op_desc::Attr>,
}
/// Nested message and enum types in `OpDesc`.
pub mod op_desc {
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct Var {
        #[prost(string, optional, tag = "1")]
        pub parameter: ::core::option::Option<::prost::alloc::string::String>,
        #[prost(string, repeated, tag = "2")]
        pub arguments: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    }
    #[derive(Clone, PartialEq, ::prost::Message)]
    pub struct Attr {
        #[prost(string, optional, tag = "1")]
        pub name: ::core::option::Option<::prost::alloc::string::String>,
        #[prost(int32, optional, tag = "2")]
        pub r#type: ::core::option::Option<i32>,
        #[prost(int32, optional, tag = "3")]
        pub i: ::core::option::Option<i32>,
        #[prost(float, optional, tag = "4")]
        pub f: ::core::option::Option<f32>,
        #[prost(string, optional, tag = "5")]
        pub s: ::core::option::Option<::prost::alloc::string::String>,
        #[prost(int32, repeated, packed = "false", tag = "6")]
        pub ints: ::prost::alloc::vec::Vec<i32>,
        #[prost(float, repeated, packed = "false", tag = "7")]
        pub floats: ::prost::alloc::vec::Vec<f32>,
        #[prost(string, repeated, tag = "8")]
        pub strings: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
        #[prost(bool, optional, tag = "10")]
        pub b: ::core::option::Option<bool>,
        #[prost(bool, repeated, packed = "false", tag = "11")]
        pub bools: ::prost::alloc::vec::Vec<bool>,
        #[prost(int32, optional, tag = "12")]
        pub block_idx: ::core::option::Option<i32>,
        #[prost(int64, optional, tag = "13")]
        pub l: ::core::option::Option<i64>,
        #[prost(int64, repeated, packed = "false", tag = "15")]
        pub longs: ::prost::alloc::vec::Vec<i64>,
        #[prost(double, repeated, packed = "false", tag = "16")]
        pub float64s: ::prost::alloc::vec::Vec<f64>,
        #[prost(double, optional, tag = "19")]
        pub float64: ::core::option::Option<f64>,
        #[prost(message, optional, tag = "20")]
        pub scalar: ::core::option::Option<super::Scalar>,
        #[prost(message, repeated, tag = "21")]
        pub scalars: ::prost::alloc::vec::Vec<super::Scalar>,
    }
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct Scalar {
    #[prost(int32, optional, tag = "1")]
    pub r#type: ::core::option::Option<i32>,
    #[prost(bool, optional, tag = "2")]
    pub b: ::core::option::Option<bool>,
    #[prost(int64, optional, tag = "3")]
    pub i: ::core::option::Option<i64>,
    #[prost(double, optional, tag = "4")]
    pub r: ::core::option::Option<f64>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct VarDesc {
    #[prost(string, optional, tag = "1")]
    pub name: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(message, optional, tag = "2")]
    pub r#type: ::core::option::Option<VarType>,
    #[prost(bool, optional, tag = "3")]
    pub persistable: ::core::option::Option<bool>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct VarType {
    #[prost(int32, optional, tag = "1")]
    pub r#type: ::core::option::Option<i32>,
    #[prost(message, optional, tag = "3")]
    pub dense_tensor: ::core::option::Option<var_type::DenseTensorDesc>,
    #[prost(message, optional, tag = "4")]
    pub tensor_array: ::core::option::Option<var_type::DenseTensorDesc>,
}
/// Nested message and enum types in `VarType`.
pub mod var_type {
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct TensorDesc {
        #[prost(int32, optional, tag = "1")]
        pub data_type: ::core::option::Option<i32>,
        #[prost(int64, repeated, packed = "false", tag = "2")]
        pub dims: ::prost::alloc::vec::Vec<i64>,
    }
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct DenseTensorDesc {
        #[prost(message, optional, tag = "1")]
        pub tensor: ::core::option::Option<TensorDesc>,
    }
}
