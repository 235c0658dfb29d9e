(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The identity of Derivation.v for the model as built (sink.general). It differs from the derivation: query head h
   reads key/value head g h, for any function g; H d' need not be d (gpt-oss: 64 x 64 = 4096 against 2880); a score
   is any real (rotation, YaRN, clipping, …); head h sees any list J h of keys (causal, window, packed documents, …).
   W^V and b^V hold the key/value heads side by side, so b^V enters through g. Nothing else is assumed. *)

From Sinkproof Require Import Sums SoftmaxSink Derivation.
From Coq Require Import Reals List Arith Lia Lra.
Import ListNotations.
Open Scope R_scope.
Open Scope V_scope.

Section General.
  Context {key : Type}.
  Variables d H d' : nat.
  Variable g : nat -> nat.           (* the key/value head of query head h *)
  Variables WV WO : mat.
  Variables bV bO : vec.
  Variable x : key -> vec.           (* the input rows, in R^d *)
  Variable s : nat -> key -> R.      (* s h j: any score *)
  Variable J : nat -> list key.      (* the keys that head h may see *)

  Notation WV_ h := (columns d' (g h) WV).
  Notation bV_ h := (block d' (g h) bV).
  Notation WO_ h := (rows d' h WO).

  Definition value h j : vec := x j *[d] WV_ h + bV_ h.

  (* Attention with any weights w h j. *)
  Definition attend (w : nat -> key -> R) : vec :=
    concat_heads d' (fun h => ∑ j ∈ J h, w h j *: value h j) *[H * d'] WO + bO.

  (* b^V, repeated for each query head: block h is block g h of b^V. *)
  Definition bV_by_head : vec := concat_heads d' (fun h => bV_ h).

  Notation tokens w := (∑ h < H, ∑ j ∈ J h, w h j *: (x j *[d] WV_ h *[d'] WO_ h)).

  (* For any weights, the value bias is multiplied by the sum of the row's weights. *)
  Lemma attend_mass w :
    attend w = tokens w + (∑ h < H, (∑ j ∈ J h, w h j)%R *: (bV_ h *[d'] WO_ h)) + bO.
  Proof.
    unfold attend. rewrite mul_concat, <- vsum_plus. f_equal. apply vsum_ext. intros h.
    rewrite vsum_mul, <- vsum_scal_const, <- vsum_plus. apply vsum_ext. intros j.
    rewrite vmul_scal, <- vscal_add. unfold value. rewrite vmul_add. reflexivity.
  Qed.

  (* Attention with the learned sink logits b h. *)
  Definition sink_attention (b : nat -> R) : vec := attend (fun h j => alpha (J h) (s h) (b h) j).

  (*> sink.general *)
  Theorem sink_general (b : nat -> R) :
    sink_attention b =
      tokens (fun h j => alpha (J h) (s h) (b h) j)
      + (∑ h < H, alpha_sink (J h) (s h) (b h) *: (- (bV_ h *[d'] WO_ h)))
      + bV_by_head *[H * d'] WO + bO.
  Proof.
    unfold sink_attention, bV_by_head. rewrite attend_mass, mul_concat. at_coordinate c.
    rewrite !Rplus_assoc. f_equal. rewrite <- Rplus_assoc. f_equal. rewrite <- Sum_plus.
    apply Sum_ext. intros h. rewrite sink_mass. ring.
  Qed.
  (*< sink.general *)
End General.

(* The derivation is the special case g h = h, d = H d', keys 1 … i and scores q k / sqrt d'. *)
Corollary derivation_is_an_instance d H d' WQ WK WV WO bQ bK bV bO b_S x i : d = (H * d')%nat ->
  ATTN d d' WQ WK WV WO bQ bK bV bO b_S x i =
  sink_attention d H d' (fun h => h) WV WO bV bO x
    (fun h j => s d d' WQ WK bQ bK x i h j) (fun _ => Derivation.J i) b_S.
Proof. intros ->. reflexivity. Qed.
