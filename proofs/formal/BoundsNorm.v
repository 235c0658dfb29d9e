(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Error bounds of RMSNorm (bound.rmsnorm): with one rounding fl for all operations, and with an error bound for each
   operation. No second-order term is dropped. Assumed: eps > 0, |fl y - y| <= u |y| in the first theorem, and a
   reciprocal square root with relative error e. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences Nodes Summation BoundsSoftmaxSink Bounds.
From Coq Require Import Reals List Permutation Lia Lra.
From Coquelicot Require Import Rcomplements.
Import ListNotations.
Open Scope R_scope.

(* y = x_c w_c / sqrt(mean square + eps). All terms of the mean are positive, so the mean has a relative error
   in any order of summation. Its roundings are d products and additions, the division by d, and the addition
   of eps. To first order the square root halves this error. The reciprocal square root has relative error e,
   and two products follow. *)
(*> bound.rmsnorm *)
Theorem bound_rmsnorm (d : nat) (x : nat -> R) (w eps : R) (c : nat)
  (fl rsqrt : R -> R) (u e : R) (t : tree) :
  (0 < d)%nat -> 0 < eps -> 0 <= u < 1 -> 0 <= e < 1 ->
  (forall y, Rabs (fl y - y) <= u * Rabs y) ->
  (forall q, 0 < q -> Rabs (rsqrt q - / sqrt q) <= e * / sqrt q) ->
  Permutation (terms t) (map (fun k => (x k, x k)) (seq 0 d)) ->
  let g := gamma (d + 2) u in INR (d + 2) * u < 1 / 2 ->
  let q' := fl (fl (eval fl t / INR d) + eps) in
  let y' := fl (fl (x c * w) * rsqrt q') in
  let y := x c * w / sqrt ((∑ k < d, x k * x k) / INR d + eps) in
  exists ρ, y' = y * ρ /\
    (1 - u) ^ 2 * (1 - e) / sqrt (1 + g) <= ρ <= (1 + u) ^ 2 * (1 + e) / sqrt (1 - g).
Proof.
  intros Hd Heps Hu He Hfl Hrs P g Hg q' y' y.
  set (T := ∑ k < d, x k * x k). set (Q := T / INR d + eps).
  assert (Hd' : 0 < INR d) by (apply (lt_INR 0), Hd).
  assert (TP : 0 <= T) by (apply Sum_nonneg; intros; apply Rle_0_sqr).
  assert (QP : 0 < Q) by (unfold Q; pose proof (Rdiv_le_0_compat T (INR d) TP Hd'); lra).
  pose proof (pos_INR (d + 2)) as H2. assert (0 <= INR (d + 2) * u) by (apply Rmult_le_pos; lra).
  assert (G : 0 <= g < 1).
  { unfold g, gamma. split; [apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat; lra]|].
    apply Rmult_lt_reg_r with (1 - INR (d + 2) * u); [lra|]. field_simplify; lra. }
  (* q' is within a factor 1 ± g of Q *)
  assert (HQ : Q * (1 - g) <= q' <= Q * (1 + g)).
  { assert (F : forall y, Rabs (fl y - y) <= u * Rabs y + 0) by (intros; rewrite Rplus_0_r; apply Hfl).
    pose proof (tree_error fl u 0 (proj1 Hu) (Rle_refl 0) F t) as B. rewrite Rmult_0_r, Rplus_0_r in B.
    rewrite (dot_perm _ _ P), (absdot_perm _ _ P) in B. unfold dot, absdot in B.
    rewrite !Sum_map in B. cbn [fst snd] in B. fold T in B.
    rewrite (Sum_ext _ (fun k => Rabs (x k * x k)) (fun k => x k * x k)) in B
      by (intros; apply Rabs_pos_eq, Rle_0_sqr). fold T in B.
    assert (D : (depth t <= d)%nat).
    { pose proof (depth_le t) as D. pose proof (products_round_le t).
      rewrite (Permutation_length P), map_length, seq_length in D. lia. }
    pose proof (Rle_pow (1 + u) (depth t) d ltac:(lra) D) as Pw.
    assert (B' : Rabs (eval fl t - T) <= ((1 + u) ^ d - 1) * T)
      by (eapply Rle_trans; [exact B | apply Rmult_le_compat_r; lra]).
    assert (B1 : Rabs (fl (eval fl t / INR d) - T / INR d) <=
                 (1 + u) * (((1 + u) ^ d - 1) * (T / INR d)) + u * (T / INR d) + 0).
    { apply (round_step fl u 0 (proj1 Hu) F).
      - rewrite Rabs_pos_eq; [lra | apply Rdiv_le_0_compat; lra].
      - unfold Rdiv. rewrite <- Rmult_minus_distr_r, Rabs_mult, (Rabs_pos_eq (/ INR d)), <- Rmult_assoc
          by (apply Rlt_le, Rinv_0_lt_compat, Hd').
        apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Hd' | exact B']. }
    assert (B2 : Rabs (q' - Q) <= (1 + u) * (((1 + u) ^ S d - 1) * Q) + u * Q + 0).
    { apply (round_step fl u 0 (proj1 Hu) F); [rewrite Rabs_pos_eq; lra|].
      replace (_ - Q) with (fl (eval fl t / INR d) - T / INR d) by (unfold Q; ring).
      eapply Rle_trans; [exact B1|].
      apply Rle_trans with (((1 + u) ^ S d - 1) * (T / INR d)); [right; simpl; ring|].
      apply Rmult_le_compat_l; [pose proof (pow_R1_Rle (1 + u) (S d) ltac:(lra)); lra|].
      unfold Q. lra. }
    pose proof (pow_gamma u (d + 2) (proj1 Hu) ltac:(lra)) as PG.
    assert (E2 : (1 + u) ^ (d + 2) = (1 + u) * (1 + u) ^ S d)
      by (replace (d + 2)%nat with (S (S d)) by lia; reflexivity).
    fold g in PG. rewrite E2 in PG. pose proof (Rmult_le_compat_r Q _ _ (Rlt_le _ _ QP) PG).
    apply abs_between in B2. lra. }
  assert (q'_pos : 0 < q') by (apply Rlt_le_trans with (2 := proj1 HQ), Rmult_lt_0_compat; lra).
  (* the reciprocal root *)
  set (r := rsqrt q' * sqrt Q).
  pose proof (sqrt_lt_R0 Q QP) as sQ. pose proof (sqrt_lt_R0 q' q'_pos) as sq'.
  assert (sl : 0 < sqrt (1 - g)) by (apply sqrt_lt_R0; lra).
  assert (sh : 0 < sqrt (1 + g)) by (apply sqrt_lt_R0; lra).
  assert (HR : (1 - e) / sqrt (1 + g) <= r <= (1 + e) / sqrt (1 - g)).
  { pose proof (Hrs q' q'_pos) as R1. apply abs_between in R1.
    assert (L1 : sqrt Q * sqrt (1 - g) <= sqrt q') by (rewrite <- sqrt_mult by lra; apply sqrt_le_1; nra).
    assert (L2 : sqrt q' <= sqrt Q * sqrt (1 + g)) by (rewrite <- sqrt_mult by lra; apply sqrt_le_1; nra).
    assert (V1 : / sqrt (1 + g) <= / sqrt q' * sqrt Q).
    { apply Rmult_le_reg_r with (sqrt q' * sqrt (1 + g)); [apply Rmult_lt_0_compat; lra|].
      field_simplify; lra. }
    assert (V2 : / sqrt q' * sqrt Q <= / sqrt (1 - g)).
    { apply Rmult_le_reg_r with (sqrt q' * sqrt (1 - g)); [apply Rmult_lt_0_compat; lra|].
      field_simplify; lra. }
    unfold r, Rdiv. split.
    - apply Rle_trans with ((1 - e) * (/ sqrt q' * sqrt Q)); [apply Rmult_le_compat_l; lra|].
      rewrite <- Rmult_assoc. apply Rmult_le_compat_r; lra.
    - apply Rle_trans with ((1 + e) * (/ sqrt q' * sqrt Q)); [|apply Rmult_le_compat_l; lra].
      rewrite <- Rmult_assoc. apply Rmult_le_compat_r; lra. }
  destruct (fl_factor fl u (x c * w) (proj1 Hu) Hfl) as (ρ1 & H1 & E1).
  destruct (fl_factor fl u (fl (x c * w) * rsqrt q') (proj1 Hu) Hfl) as (ρ2 & H3 & E2).
  exists (ρ1 * ρ2 * r). split.
  - unfold y', y. fold T. fold Q. rewrite E2, E1. unfold r. field. lra.
  - assert (0 < (1 - e) / sqrt (1 + g)) by (apply Rdiv_lt_0_compat; lra).
    pose proof (mul_between (1 - u) _ (1 - u) _ _ _ ltac:(lra) H1 ltac:(lra) H3) as M.
    assert (U2 : 0 <= (1 - u) * (1 - u)) by (apply Rmult_le_pos; lra).
    pose proof (mul_between _ _ ((1 - e) / sqrt (1 + g)) _ _ _ U2 M ltac:(lra) HR) as M2.
    unfold Rdiv in *. simpl. lra.
Qed.

(* The same with an error bound for each operation. q' approximates Q, the mean plus eps, with relative error
   g (the next theorem computes g). The reciprocal square root has relative error e. The two products have
   relative errors v and w' and may underflow by ηv and ηw. *)
Theorem bound_rmsnorm_steps (x w Q q' r' p' y' g e v w' ηv ηw : R) :
  0 < Q -> 0 <= g < 1 -> 0 <= e -> 0 <= v -> 0 <= w' -> Rabs (q' - Q) <= g * Q ->
  Rabs (r' - / sqrt q') <= e * / sqrt q' ->
  Rabs (p' - x * w) <= v * Rabs (x * w) + ηv -> Rabs (y' - p' * r') <= w' * Rabs (p' * r') + ηw ->
  let y := x * w / sqrt Q in let top := (1 + e) / sqrt (1 - g) in
  Rabs (y' - y) <= ((1 + v) * (1 + w') * top - 1) * Rabs y + (1 + w') * ηv * (top / sqrt Q) + ηw.
Proof.
  intros HQ Hg He Hv Hw HQ' HR HP HY y top.
  pose proof (sqrt_lt_R0 Q HQ) as sQ. assert (sg : 0 < sqrt (1 - g)) by (apply sqrt_lt_R0; lra).
  apply abs_between in HQ'. assert (q0 : 0 < q') by nra. pose proof (sqrt_lt_R0 q' q0) as sq'.
  assert (V : Rabs (/ sqrt q' - / sqrt Q) <= (/ sqrt (1 - g) - 1) * / sqrt Q).
  { assert (L1 : sqrt Q * sqrt (1 - g) <= sqrt q') by (rewrite <- sqrt_mult by lra; apply sqrt_le_1; nra).
    assert (L2 : sqrt q' <= sqrt Q * sqrt (1 + g)) by (rewrite <- sqrt_mult by lra; apply sqrt_le_1; nra).
    assert (sh : 0 < sqrt (1 + g)) by (apply sqrt_lt_R0; lra).
    assert (U : / sqrt q' <= / sqrt (1 - g) * / sqrt Q).
    { rewrite <- Rinv_mult, (Rmult_comm (sqrt (1 - g))). apply Rinv_le_contravar; [|exact L1].
      apply Rmult_lt_0_compat; assumption. }
    assert (L : (2 - / sqrt (1 - g)) * / sqrt Q <= / sqrt q').
    { apply Rle_trans with (/ sqrt (1 + g) * / sqrt Q).
      - apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, sQ|].
        (* 1 / a + 1 / b >= 2 for a² + b² = 2: a b <= 1 and a + b >= 2 a b *)
        set (a := sqrt (1 - g)) in *. set (b := sqrt (1 + g)) in *.
        assert (Ea : a * a = 1 - g) by (apply sqrt_sqrt; lra).
        assert (Eb : b * b = 1 + g) by (apply sqrt_sqrt; lra).
        assert (ab : a * b <= 1) by (pose proof (Rle_0_sqr (a - b)) as Z; unfold Rsqr in Z; nra).
        assert (ab0 : 0 < a * b) by (apply Rmult_lt_0_compat; assumption).
        assert (S : 2 * (a * b) <= a + b).
        { apply Rsqr_incr_0_var; [unfold Rsqr; nra | lra]. }
        apply Rmult_le_reg_r with (a * b); [exact ab0|]. field_simplify; [|lra|lra]. lra.
      - rewrite <- Rinv_mult, (Rmult_comm (sqrt (1 + g))). apply Rinv_le_contravar; assumption. }
    apply Rabs_le. lra. }
  assert (R1 : Rabs (r' - / sqrt Q) <= (top - 1) * / sqrt Q).
  { replace (r' - / sqrt Q) with ((r' - / sqrt q') + (/ sqrt q' - / sqrt Q)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. apply Rcomplements.Rabs_le_between in V.
    assert (V1 : / sqrt q' <= / sqrt (1 - g) * / sqrt Q) by lra.
    pose proof (Rmult_le_compat_l e _ _ He V1).
    assert (Rabs (/ sqrt q' - / sqrt Q) <= (/ sqrt (1 - g) - 1) * / sqrt Q) by (apply Rabs_le; lra).
    unfold top, Rdiv. lra. }
  set (i := / sqrt Q) in *. assert (i0 : 0 < i) by (apply Rinv_0_lt_compat, sQ).
  assert (T1 : 0 <= top - 1) by (pose proof (Rabs_pos (r' - i)); nra).
  assert (Rr : Rabs r' <= top * i).
  { replace r' with (i + (r' - i)) by ring. pose proof (Rabs_triang i (r' - i)).
    rewrite (Rabs_pos_eq i) in * by lra. lra. }
  set (X := Rabs (x * w)) in *. assert (X0 : 0 <= X) by apply Rabs_pos.
  (* p' r' against y *)
  assert (P : Rabs (p' * r' - y) <= ((1 + v) * top - 1) * (X * i) + ηv * (top * i)).
  { unfold y, Rdiv. fold i. replace (p' * r' - x * w * i) with ((p' - x * w) * r' + x * w * (r' - i)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult. fold X.
    replace (Rabs x * Rabs w) with X by (unfold X; apply Rabs_mult).
    pose proof (Rmult_le_compat _ _ _ _ (Rabs_pos _) (Rabs_pos _) HP Rr).
    pose proof (Rmult_le_compat_l X _ _ X0 R1). lra. }
  assert (Ey : Rabs y = X * i).
  { unfold y, Rdiv. fold i. rewrite Rabs_mult, (Rabs_pos_eq i) by lra. reflexivity. }
  rewrite Ey. replace (y' - y) with ((y' - p' * r') + (p' * r' - y)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (S : Rabs (p' * r') <= X * i + (((1 + v) * top - 1) * (X * i) + ηv * (top * i))).
  { replace (p' * r') with (y + (p' * r' - y)) by ring. pose proof (Rabs_triang y (p' * r' - y)). lra. }
  pose proof (Rmult_le_compat_l w' _ _ Hw S). unfold Rdiv. fold i. lra.
Qed.

(* The mean of the squares plus eps. The sum of squares has relative error p and underflow ηs, the division by
   d has v and ηv, the addition of eps has w and ηw. Since Q >= eps, g bounds all of these relative to Q. *)
Theorem bound_rmsnorm_mean (T S' m' q' eps p v w ηs ηv ηw : R) (d : nat) :
  (0 < d)%nat -> 0 <= T -> 0 < eps -> 0 <= p -> 0 <= v -> 0 <= w -> 0 <= ηs -> 0 <= ηv -> 0 <= ηw ->
  Rabs (S' - T) <= p * T + ηs -> Rabs (m' - S' / INR d) <= v * Rabs (S' / INR d) + ηv ->
  Rabs (q' - (m' + eps)) <= w * Rabs (m' + eps) + ηw ->
  let Q := T / INR d + eps in
  let g := (1 + p) * (1 + v) * (1 + w) - 1 + ((1 + w) * ((1 + v) * (ηs / INR d) + ηv) + ηw) / eps in
  Rabs (q' - Q) <= g * Q.
Proof.
  intros Hd HT Heps Hp Hv Hw Hs Hηv Hηw HS Hm Hq Q g.
  assert (Hd' : 0 < INR d) by (apply (lt_INR 0), Hd).
  set (M := T / INR d) in *.
  assert (M0 : 0 <= M) by (apply Rdiv_le_0_compat; assumption).
  assert (E1 : Rabs (S' / INR d - M) <= p * M + ηs / INR d).
  { unfold M, Rdiv. rewrite <- Rmult_minus_distr_r, Rabs_mult, (Rabs_pos_eq (/ INR d))
      by (apply Rlt_le, Rinv_0_lt_compat, Hd').
    replace (p * (T * / INR d) + ηs * / INR d) with ((p * T + ηs) * / INR d) by ring.
    apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Hd' | exact HS]. }
  set (h := ηs / INR d) in *. assert (h0 : 0 <= h) by (apply Rdiv_le_0_compat; assumption).
  pose proof (operation_step _ _ M M _ v ηv Hv Hm ltac:(rewrite Rabs_pos_eq; lra) E1) as E2.
  assert (E3 : Rabs (m' + eps - Q) <= (1 + v) * (p * M + h) + v * M + ηv)
    by (unfold Q; replace (m' + eps - (M + eps)) with (m' - M) by ring; exact E2).
  pose proof (operation_step _ _ Q Q _ w ηw Hw Hq
    ltac:(rewrite Rabs_pos_eq; unfold Q; lra) E3) as E4.
  eapply Rle_trans; [exact E4|].
  set (c := (1 + w) * ((1 + v) * h + ηv) + ηw) in *.
  assert (c0 : 0 <= c).
  { unfold c. apply Rplus_le_le_0_compat; [|exact Hηw]. apply Rmult_le_pos; [lra|].
    apply Rplus_le_le_0_compat; [apply Rmult_le_pos; lra | exact Hηv]. }
  assert (C : c <= c / eps * Q).
  { replace c with (c / eps * eps) at 1 by (field; lra). apply Rmult_le_compat_l;
      [apply Rdiv_le_0_compat; assumption | unfold Q; lra]. }
  assert (MQ : (p * (1 + v) + v) * M <= (p * (1 + v) + v) * Q).
  { apply Rmult_le_compat_l; [|unfold Q; lra]. apply Rplus_le_le_0_compat; [apply Rmult_le_pos|]; lra. }
  pose proof (Rmult_le_compat_l (1 + w) _ _ ltac:(lra) MQ).
  assert (Eg : g * Q = ((1 + p) * (1 + v) * (1 + w) - 1) * Q + c / eps * Q) by (unfold g; fold h; fold c; ring).
  rewrite Eg. apply Rle_trans with ((1 + w) * ((p * (1 + v) + v) * Q) + w * Q + c); [unfold c | ]; lra.
Qed.
(*< bound.rmsnorm *)
