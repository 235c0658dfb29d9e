(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Error bounds of rounded weights in three other forms: exponentials in base 2 (bound.form-base2), a running maximum
   (bound.form-running-max), and experts' weights that are renormalised over the chosen experts (bound.form-router).
   No second-order term is dropped. Assumed: for each operation a bound of its relative error (such as v) and of its
   absolute error by underflow (such as ηt). *)

From Sinkproof Require Import Sums Summation BoundsSoftmaxSink Bounds.
From Coq Require Import Reals List Permutation Lia Lra.
Import ListNotations.
Open Scope R_scope.

(* ---- weights from terms that are known within factors ---- *)

(* Every operation has its own error bound. Term e k lies between C lo k and C hi k, where the factor C is
   common to all terms. Their computed sum D' has relative error g. The numerator w is another computation of
   term i, within a factor c of it. The weight a' differs from the quotient by the relative error q and the
   underflow η. *)
Lemma weight_of_terms {A} (i : A) (others : list A) (e lo hi : A -> R) (w C c D' a' g q η : R) :
  let I := i :: others in 1 <= c -> 0 <= g < 1 -> 0 <= q <= 1 -> 0 < C -> 0 < Sum I lo ->
  (forall k, In k I -> 0 <= lo k /\ C * lo k <= e k <= C * hi k) ->
  C * lo i <= w <= C * hi i -> e i <= c * w -> w <= c * e i ->
  Rabs (D' - Sum I e) <= g * Sum I e -> Rabs (a' - w / D') <= q * (w / D') + η ->
  lo i / (c * lo i + Sum others hi) * ((1 - q) / (1 + g)) - η <= a' <=
  hi i / (hi i / c + Sum others lo) * ((1 + q) / (1 - g)) + η.
Proof.
  intros I Hc Hg Hq HC HL K Hw W1 W2 HD Ha. unfold I in *. cbn [Sum] in *.
  set (L := Sum others lo) in *. set (H := Sum others hi). set (r := Sum others e) in *.
  destruct (K i (or_introl eq_refl)) as [L0 [Ll Lh]].
  assert (R0 : 0 <= L) by (apply Sum_nonneg; intros k Hk; apply K; right; exact Hk).
  assert (R1 : C * L <= r <= C * H).
  { unfold L, H, r. rewrite <- !Sum_scal_l. split; apply Sum_le; intros k Hk; apply K; right; exact Hk. }
  assert (LH : L <= H) by (apply Rmult_le_reg_l with C; lra).
  assert (lh : lo i <= hi i) by (apply Rmult_le_reg_l with C; lra).
  assert (Cl : 0 <= C * lo i) by (apply Rmult_le_pos; lra).
  assert (CL : 0 <= C * L) by (apply Rmult_le_pos; lra).
  assert (P : 0 < C * lo i + C * L) by (rewrite <- Rmult_plus_distr_l; apply Rmult_lt_0_compat; lra).
  assert (c0 : 0 < / c) by (apply Rinv_0_lt_compat; lra).
  (* x / (c x + r) grows with x and falls with r *)
  assert (M : forall d x1 x2 r1 r2, 0 <= x1 <= x2 -> 0 <= r2 <= r1 -> 0 < d * x2 + r2 -> 0 < d * x1 + r1 ->
                x1 / (d * x1 + r1) <= x2 / (d * x2 + r2)).
  { intros d x1 x2 r1 r2 H1 H2 P2 P1. apply Rmult_le_reg_r with ((d * x1 + r1) * (d * x2 + r2));
      [apply Rmult_lt_0_compat; lra|].
    replace (x1 / (d * x1 + r1) * ((d * x1 + r1) * (d * x2 + r2))) with (d * x1 * x2 + x1 * r2)
      by (field; lra).
    replace (x2 / (d * x2 + r2) * ((d * x1 + r1) * (d * x2 + r2))) with (d * x1 * x2 + x2 * r1)
      by (field; lra).
    assert (x1 * r2 <= x2 * r1) by (apply Rmult_le_compat; lra). lra. }
  assert (positive : forall x y, 0 <= x -> 0 <= y -> (0 < x \/ 0 < y) -> 0 < / c * x + y).
  { intros x y X Y [Q | Q]; pose proof (Rmult_le_pos _ _ (Rlt_le _ _ c0) X);
      [pose proof (Rmult_lt_0_compat _ _ c0 Q)|]; lra. }
  assert (w0 : 0 <= w) by lra. assert (cw : w <= c * w) by nra. assert (cl : lo i <= c * lo i) by nra.
  assert (S0 : 0 < e i + r) by lra.
  assert (D1 : 0 < c * lo i + H).
  { assert (0 < lo i + L) by (apply Rmult_lt_reg_l with C; lra). lra. }
  pose proof (Rmult_lt_0_compat _ _ HC D1).
  assert (Q1 : lo i / (c * lo i + H) <= w / (e i + r)).
  { apply Rle_trans with (w / (c * w + r)).
    - replace (lo i / (c * lo i + H)) with (C * lo i / (c * (C * lo i) + C * H)) by (field; lra).
      apply M; lra.
    - apply Rmult_le_compat_l; [exact w0 | apply Rinv_le_contravar; lra]. }
  assert (Q2 : w / (e i + r) <= hi i / (hi i / c + L)).
  { assert (V : / c * w <= e i).
    { apply Rmult_le_reg_l with c; [lra|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l; lra. }
    assert (D2 : 0 < / c * w + r).
    { apply positive; try lra. }
    assert (D3 : 0 < / c * (C * hi i) + C * L).
    { apply positive; try lra. }
    apply Rle_trans with (w / (/ c * w + r)).
    - apply Rmult_le_compat_l; [exact w0 | apply Rinv_le_contravar; lra].
    - replace (hi i / (hi i / c + L)) with (C * hi i / (/ c * (C * hi i) + C * L)).
      + apply M; lra.
      + replace (/ c * (C * hi i) + C * L) with (C * (hi i / c + L)) in * by (field; lra).
        assert (hi i / c + L <> 0) by (intros E; rewrite E, Rmult_0_r in D3; lra).
        set (d := hi i / c + L) in *. field. lra. }
  set (x := w / (e i + r)) in *.
  assert (x0 : 0 <= x) by (apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat; lra]).
  apply abs_between in HD. assert (D0 : 0 < (e i + r) * (1 - g)) by (apply Rmult_lt_0_compat; lra).
  assert (V : x * / (1 + g) <= w / D' <= x * / (1 - g)).
  { replace (x * / (1 + g)) with (w / ((e i + r) * (1 + g))) by (unfold x; field; lra).
    replace (x * / (1 - g)) with (w / ((e i + r) * (1 - g))) by (unfold x; field; lra).
    split; apply Rmult_le_compat_l; try lra; apply Rinv_le_contravar; lra. }
  assert (V1 : 0 < / (1 + g)) by (apply Rinv_0_lt_compat; lra).
  assert (V2 : 0 < / (1 - g)) by (apply Rinv_0_lt_compat; lra).
  apply within in Ha. set (y := w / D') in *.
  set (A1 := lo i / (c * lo i + H)) in *. set (A2 := hi i / (hi i / c + L)) in *. unfold Rdiv. split.
  - apply Rle_trans with (y * (1 - q) - η); [|lra]. apply Rplus_le_compat_r.
    rewrite (Rmult_comm (1 - q)), <- Rmult_assoc. apply Rmult_le_compat_r; [lra|].
    apply Rle_trans with (2 := proj1 V), Rmult_le_compat_r; lra.
  - apply Rle_trans with (y * (1 + q) + η); [lra|]. apply Rplus_le_compat_r.
    rewrite (Rmult_comm (1 + q)), <- Rmult_assoc. apply Rmult_le_compat_r; [lra|].
    apply Rle_trans with (1 := proj2 V), Rmult_le_compat_r; lra.
Qed.

(* ---- base 2 ---- *)

(* In natural units, since 2^(y log2 e) = e^y. y k is within Y k of (1 + κ) z k: κ is the relative error of
   the constants, which all terms share, and Y k bounds the roundings of the product for score k. μ is within
   M of (1 + κ) m, where m is the maximum. The difference has errors v and ηt, the exponential e and ηx, the
   sum g, the quotient q and ηq. G k bounds the error that remains in exponent k. *)
(*> bound.form-base2 *)
Theorem bound_form_base2 {A} (i : A) (others : list A) (z y Y t' e' : A -> R)
  (m μ κ κ0 M v e g q ηt ηx ηq D' α' : R) :
  let I := i :: others in
  0 <= v -> 0 <= ηt -> 0 <= e < 1 -> 0 <= ηx -> 0 <= g < 1 -> 0 <= q <= 1 ->
  Rabs κ <= κ0 -> Rabs (μ - (1 + κ) * m) <= M -> (forall k, Rabs (y k - (1 + κ) * z k) <= Y k) ->
  (forall k, Rabs (t' k - (y k - μ)) <= v * Rabs (y k - μ) + ηt) ->
  (forall k, 0 <= e' k /\ Rabs (e' k - exp (t' k)) <= e * exp (t' k) + ηx) ->
  Rabs (D' - Sum I e') <= g * Sum I e' -> Rabs (α' - e' i / D') <= q * (e' i / D') + ηq ->
  let far k := Rabs (z k - m) in
  let G k := κ0 * far k + Y k + v * ((1 + κ0) * far k + Y k + M) + ηt in
  let lo k := Rmax 0 (exp (z k - m) * (exp (- G k) * (1 - e)) - exp M * ηx) in
  let hi k := exp (z k - m) * (exp (G k) * (1 + e)) + exp M * ηx in
  0 < Sum I lo ->
  lo i / (lo i + Sum others hi) * ((1 - q) / (1 + g)) - ηq <= α' <=
  hi i / (hi i + Sum others lo) * ((1 + q) / (1 - g)) + ηq.
Proof.
  intros I Hv Ht0 He Hx0 Hg Hq Hκ Hμ HY Ht Hx HD Hα far G lo hi HL.
  set (c := μ - (1 + κ) * m) in *.
  assert (K : forall k, 0 <= lo k /\ exp (- c) * lo k <= e' k <= exp (- c) * hi k).
  { intros k. specialize (HY k). specialize (Ht k). destruct (Hx k) as [X0 Xk]. clear Hx.
    pose proof (Rabs_pos (z k - m)).
    assert (T1 : Rabs (κ * (z k - m)) <= κ0 * far k).
    { rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos | exact Hκ]. }
    assert (T2 : Rabs ((1 + κ) * (z k - m)) <= (1 + κ0) * far k).
    { rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos|].
      eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_R1. lra. }
    assert (E : Rabs (t' k - (z k - m) + c) <= G k).
    { assert (Y1 : Rabs (y k - μ) <= (1 + κ0) * far k + Y k + M).
      { replace (y k - μ) with ((1 + κ) * (z k - m) + (y k - (1 + κ) * z k) + - c) by (unfold c; ring).
        eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
        eapply Rle_trans; [apply Rplus_le_compat_r, Rabs_triang | lra]. }
      pose proof (Rmult_le_compat_l v _ _ Hv Y1).
      replace (t' k - (z k - m) + c) with (κ * (z k - m) + (y k - (1 + κ) * z k) + (t' k - (y k - μ)))
        by (unfold c; ring).
      eapply Rle_trans; [apply Rabs_triang|]. unfold G.
      eapply Rle_trans; [apply Rplus_le_compat_r, Rabs_triang | lra]. }
    apply within in E. apply abs_between in Xk. apply within in Hμ.
    pose proof (exp_pos (- c)) as C0. pose proof (exp_pos (z k - m)) as P0.
    assert (CM : 1 <= exp (- c) * exp M)
      by (rewrite <- exp_plus, <- exp_0; apply exp_le; lra).
    assert (U : ηx <= exp (- c) * (exp M * ηx))
      by (rewrite <- Rmult_assoc, <- (Rmult_1_l ηx) at 1; apply Rmult_le_compat_r; assumption).
    assert (B1 : exp (- c) * (exp (z k - m) * exp (- G k)) <= exp (t' k))
      by (rewrite <- !exp_plus; apply exp_le; lra).
    assert (B2 : exp (t' k) <= exp (- c) * (exp (z k - m) * exp (G k)))
      by (rewrite <- !exp_plus; apply exp_le; lra).
    pose proof (Rmult_le_compat_r (1 - e) _ _ ltac:(lra) B1).
    pose proof (Rmult_le_compat_r (1 + e) _ _ ltac:(lra) B2).
    unfold lo, hi. split; [apply Rmax_l|]. split; [|lra].
    unfold Rmax. destruct (Rle_dec _ _); lra. }
  pose proof (weight_of_terms i others e' lo hi (e' i) (exp (- c)) 1 D' α' g q ηq) as W. cbv zeta in W.
  replace (hi i / 1) with (hi i) in W by field. rewrite !Rmult_1_l in W.
  apply W; auto; try lra; [apply exp_pos | apply K].
Qed.

(* One format, without underflow, any tree. κ0 bounds the roundings of the constants, d those of a product. *)
Corollary bound_form_base2_one_format {A} (i : A) (others : list A) (z δ x t' : A -> R)
  (m μ κ κ0 d u e : R) (fl : R -> R) (t : tree) :
  let n := length others in let y k := z k * (1 + κ) * (1 + δ k) in
  0 <= u < 1 -> INR n * u < 1 / 2 -> 0 <= e < 1 ->
  (forall v, Rabs (fl v - v) <= u * Rabs v) ->
  Rabs κ <= κ0 -> (forall k, Rabs (δ k) <= d) -> (forall k, Rabs (x k) <= e) ->
  Rabs (μ - (1 + κ) * m) <= (1 + κ0) * (d * Rabs m) ->
  (forall k, Rabs (t' k - (y k - μ)) <= u * Rabs (y k - μ)) ->
  let e' k := exp (t' k) * (1 + x k) in
  let far k := Rabs (z k - m) in
  let G k := κ0 * far k + (1 + κ0) * (d * Rabs (z k))
             + u * ((1 + κ0) * (far k + d * (Rabs (z k) + Rabs m))) in
  let lo k := exp (z k - m) * (exp (- G k) * (1 - e)) in
  let hi k := exp (z k - m) * (exp (G k) * (1 + e)) in
  Permutation (terms t) (map (fun k => (e' k, 1)) (i :: others)) -> products_round t = 0%nat ->
  let α' := fl (e' i / eval fl t) in
  lo i / (lo i + Sum others hi) * ((1 - u) / (1 + gamma n u)) <= α' <=
  hi i / (hi i + Sum others lo) * ((1 + u) / (1 - gamma n u)).
Proof.
  intros n y Hu Hn He Hfl Hκ Hδ Hx Hμ Ht e' far G lo hi P Hp α'.
  pose proof (gamma_small n u (proj1 Hu) Hn) as Gs. pose proof (Rabs_pos κ).
  assert (E0 : forall k, 0 < e' k).
  { intros k. specialize (Hx k). apply within in Hx. apply Rmult_lt_0_compat; [apply exp_pos | lra]. }
  assert (ES := positive_sum (i :: others) e' n fl u t (proj1 Hu) Hn Hfl
    ltac:(simpl; unfold n; lia) E0 P Hp).
  assert (SP : 0 < Sum (i :: others) e') by (apply Sum_pos; [discriminate | intros; apply E0]).
  assert (DP : 0 < eval fl t) by (apply Rlt_le_trans with (2 := proj1 ES), Rmult_lt_0_compat; lra).
  set (Y := fun k => (1 + κ0) * (d * Rabs (z k))). set (M := (1 + κ0) * (d * Rabs m)).
  set (G' := fun k => κ0 * far k + Y k + u * ((1 + κ0) * far k + Y k + M) + 0).
  set (lo' := fun k => Rmax 0 (exp (z k - m) * (exp (- G' k) * (1 - e)) - exp M * 0)).
  set (hi' := fun k => exp (z k - m) * (exp (G' k) * (1 + e)) + exp M * 0).
  assert (EG : forall k, G' k = G k) by (intros; unfold G', G, Y, M; ring).
  assert (lo_pos : forall k, 0 < lo k)
    by (intros; unfold lo; repeat apply Rmult_lt_0_compat; try apply exp_pos; lra).
  assert (El : forall k, lo' k = lo k).
  { intros k. unfold lo'. rewrite EG, Rmult_0_r, Rminus_0_r. apply Rmax_right, Rlt_le, lo_pos. }
  assert (Eh : forall k, hi' k = hi k) by (intros k; unfold hi'; rewrite EG, Rmult_0_r; apply Rplus_0_r).
  rewrite <- (El i), <- (Eh i), <- (Sum_ext others lo' lo El), <- (Sum_ext others hi' hi Eh).
  rewrite <- (Rminus_0_r (lo' i / _ * _)), <- (Rplus_0_r (hi' i / _ * _)).
  apply (bound_form_base2 i others z y Y t' e' m μ κ κ0 M u e (gamma n u) u 0 0 0 (eval fl t) α'); auto; try lra.
  - intros k. unfold y, Y. replace (z k * (1 + κ) * (1 + δ k) - (1 + κ) * z k) with ((1 + κ) * (δ k * z k)) by ring.
    rewrite !Rabs_mult. apply Rmult_le_compat; try apply Rabs_pos.
    + apply Rmult_le_pos; apply Rabs_pos.
    + eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_R1. lra.
    + apply Rmult_le_compat_r; [apply Rabs_pos | apply Hδ].
  - intros k. rewrite Rplus_0_r. apply Ht.
  - intros k. split; [apply Rlt_le, E0|]. unfold e'. rewrite Rplus_0_r.
    replace (_ - _) with (exp (t' k) * x k) by ring. rewrite Rabs_mult, Rabs_pos_eq by (apply Rlt_le, exp_pos).
    rewrite Rmult_comm. apply Rmult_le_compat_r; [apply Rlt_le, exp_pos | apply Hx].
  - apply Rabs_le. lra.
  - rewrite Rplus_0_r. eapply Rle_trans; [apply Hfl|]. right. f_equal. apply Rabs_pos_eq.
    apply Rlt_le, Rdiv_lt_0_compat; [apply E0 | exact DP].
  - change (0 < Sum (i :: others) lo'). rewrite (Sum_ext (i :: others) lo' lo El).
    apply Sum_pos; [discriminate | intros; apply lo_pos].
Qed.
(*< bound.form-base2 *)

(* ---- a running maximum ---- *)

Fixpoint Product {A} (l : list A) (f : A -> R) : R :=
  match l with
  | [] => 1
  | k :: rest => f k * Product rest f
  end.

Lemma Product_pos {A} (l : list A) f : (forall k, 0 < f k) -> 0 < Product l f.
Proof. intros H. induction l; simpl; [lra | apply Rmult_lt_0_compat; auto]. Qed.

Lemma Product_ge_1 {A} (l : list A) f : (forall k, 1 <= f k) -> 1 <= Product l f.
Proof. intros H. induction l as [|k l IH]; simpl; [lra|]. specialize (H k). nra. Qed.

(* Each step multiplies a term by a computed exponential of a k <= 0 and rounds. The a k add up to the
   distance from the first maximum to the last. Step k has its own error bounds: E k for the exponent (u |a k|
   if it is a difference that rounds once, more in base 2), e k for the exponential, p k for the product, and
   η k for the underflow of the product and of the exponential, the latter multiplied by the term. *)
(*> bound.form-running-max *)
Theorem bound_form_running_max {A} (steps : list A) (a d x ρ h E e p η : A -> R) :
  (forall k, a k <= 0) -> (forall k, 0 <= e k < 1) -> (forall k, 0 <= p k < 1) ->
  (forall k, Rabs (d k) <= E k) -> (forall k, Rabs (x k) <= e k) -> (forall k, Rabs (ρ k) <= p k) ->
  (forall k, Rabs (h k) <= η k) ->
  let step w k := w * (exp (a k + d k) * (1 + x k)) * (1 + ρ k) + h k in
  let far := Sum steps a in let off := Sum steps E in
  let least := Product steps (fun k => (1 - e k) * (1 - p k)) in
  let most := Product steps (fun k => (1 + e k) * (1 + p k)) in
  let under := exp off * most * Sum steps η in
  forall w, 0 <= w ->
  w * exp far * (exp (- off) * least) - under <= fold_left step steps w <=
  w * exp far * (exp off * most) + under.
Proof.
  intros Ha He Hp Hd Hx Hρ Hh step far off least most under w Hw.
  (* the factor of one step *)
  set (lo := fun k => exp (a k) * exp (- E k) * ((1 - e k) * (1 - p k))).
  set (hi := fun k => exp (a k) * exp (E k) * ((1 + e k) * (1 + p k))).
  assert (Q : forall k, 0 < lo k /\ lo k <= exp (a k + d k) * (1 + x k) * (1 + ρ k) <= hi k).
  { intros k. specialize (He k). specialize (Hp k). pose proof (within _ _ (Hx k)).
    pose proof (within _ _ (Hρ k)). pose proof (within _ _ (Hd k)). unfold lo, hi. rewrite <- !exp_plus.
    pose proof (exp_pos (a k + - E k)). pose proof (exp_pos (a k + d k)).
    pose proof (exp_le (a k + - E k) (a k + d k) ltac:(lra)).
    pose proof (exp_le (a k + d k) (a k + E k) ltac:(lra)).
    split; [apply Rmult_lt_0_compat; [|apply Rmult_lt_0_compat]; lra|]. rewrite Rmult_assoc.
    assert (X : (1 - e k) * (1 - p k) <= (1 + x k) * (1 + ρ k) <= (1 + e k) * (1 + p k))
      by (apply mul_between; lra).
    assert (0 <= (1 - e k) * (1 - p k)) by (apply Rmult_le_pos; lra).
    split; apply Rmult_le_compat; lra. }
  assert (Most : forall l : list A, 1 <= exp (Sum l E) * Product l (fun k => (1 + e k) * (1 + p k))).
  { intros l. assert (0 <= Sum l E)
      by (apply Sum_nonneg; intros k _; pose proof (Hd k); pose proof (Rabs_pos (d k)); lra).
    pose proof (exp_le 0 _ H). rewrite exp_0 in H0.
    pose proof (Product_ge_1 l (fun k => (1 + e k) * (1 + p k))) as P1.
    assert (1 <= Product l (fun k => (1 + e k) * (1 + p k)))
      by (apply P1; intros k; specialize (He k); specialize (Hp k); nra). nra. }
  (* induction over the steps, from any number that is within the bounds so far *)
  assert (Along : forall l V H v, 0 <= V -> 0 <= H -> forall W, V - H <= v <= W + H -> 0 <= W ->
    let M := exp (Sum l E) * Product l (fun k => (1 + e k) * (1 + p k)) in
    V * Product l lo - (H * M + M * Sum l η) <= fold_left step l v <=
    W * Product l hi + (H * M + M * Sum l η)).
  { induction l as [|k l IH]; intros V H v HV HH W Hv HW; cbv zeta.
    - simpl. rewrite exp_0. lra.
    - cbn [fold_left Product Sum]. rewrite exp_plus. destruct (Q k) as [L0 [Ql Qh]].
      pose proof (within _ _ (Hh k)) as Hk. set (F := exp (a k + d k) * (1 + x k) * (1 + ρ k)) in *.
      assert (Es : step v k = v * F + h k) by (unfold step, F; ring).
      assert (F1 : hi k <= exp (E k) * ((1 + e k) * (1 + p k))).
      { unfold hi. specialize (Ha k). specialize (He k). specialize (Hp k).
        pose proof (exp_le _ _ Ha) as A1. rewrite exp_0 in A1. pose proof (exp_pos (E k)).
        rewrite Rmult_assoc. rewrite <- (Rmult_1_l (exp (E k) * _)) at 2. apply Rmult_le_compat_r; [|exact A1].
        repeat apply Rmult_le_pos; lra. }
      set (g := exp (E k) * ((1 + e k) * (1 + p k))) in *.
      assert (g1 : 1 <= g).
      { pose proof (Most [k]) as M1. simpl in M1. rewrite Rplus_0_r, Rmult_1_r in M1. exact M1. }
      assert (HF : H * F <= H * g) by (apply Rmult_le_compat_l; lra).
      assert (VF : V * lo k <= V * F) by (apply Rmult_le_compat_l; lra).
      assert (WF : W * F <= W * hi k) by (apply Rmult_le_compat_l; lra).
      assert (vl : (V - H) * F <= v * F) by (apply Rmult_le_compat_r; lra).
      assert (vh : v * F <= (W + H) * F) by (apply Rmult_le_compat_r; lra).
      assert (η0 : 0 <= η k) by (pose proof (Hh k); pose proof (Rabs_pos (h k)); lra).
      assert (HH' : 0 <= H * g + η k) by (apply Rplus_le_le_0_compat; [apply Rmult_le_pos|]; lra).
      specialize (IH (V * lo k) (H * g + η k) (step v k) ltac:(apply Rmult_le_pos; lra) HH' (W * hi k)
        ltac:(rewrite Es; lra) ltac:(apply Rmult_le_pos; lra)). cbv zeta in IH.
      set (M := exp (Sum l E) * Product l (fun k => (1 + e k) * (1 + p k))) in *.
      pose proof (Most l : 1 <= M) as M1.
      replace (exp (E k) * exp (Sum l E) * ((1 + e k) * (1 + p k) * Product l (fun k => (1 + e k) * (1 + p k))))
        with (g * M) by (unfold g, M; ring).
      assert (η k * M <= g * M * η k)
        by (rewrite (Rmult_comm (η k)); apply Rmult_le_compat_r; [exact η0 | nra]).
      assert (N0 : 0 <= Sum l η)
        by (apply Sum_nonneg; intros j _; pose proof (Hh j); pose proof (Rabs_pos (h j)); lra).
      assert (M * Sum l η <= g * M * Sum l η) by (apply Rmult_le_compat_r; [exact N0 | nra]). lra. }
  assert (Pl : forall l : list A, Product l lo = exp (Sum l a) * (exp (- Sum l E) * Product l (fun k => (1 - e k) * (1 - p k)))).
  { induction l as [|k l IH]; simpl; [rewrite Ropp_0, exp_0; ring|].
    rewrite IH. unfold lo. rewrite Ropp_plus_distr, !exp_plus. ring. }
  assert (Ph : forall l : list A, Product l hi = exp (Sum l a) * (exp (Sum l E) * Product l (fun k => (1 + e k) * (1 + p k)))).
  { induction l as [|k l IH]; simpl; [rewrite exp_0; ring|]. rewrite IH. unfold hi. rewrite !exp_plus. ring. }
  specialize (Along steps w 0 w Hw (Rle_refl 0) w ltac:(lra) Hw). cbv zeta in Along.
  rewrite Pl, Ph, Rmult_0_l, Rplus_0_l in Along. fold far off least most under in Along.
  rewrite <- !(Rmult_assoc w) in Along. exact Along.
Qed.

(* The numerator may be rescaled separately from its copy in the sum. c bounds the ratio of the two. The other
   errors are those of bound_softmax_sink. *)
Theorem bound_form_running_max_weight {A} (i : A) (others : list A) (e' lo hi : A -> R)
  (w c D' α' g q η : R) :
  let I := i :: others in 1 <= c -> 0 <= g < 1 -> 0 <= q <= 1 -> 0 < Sum I lo ->
  (forall k, In k I -> 0 <= lo k /\ lo k <= e' k <= hi k) ->
  lo i <= w <= hi i -> e' i <= c * w -> w <= c * e' i ->
  Rabs (D' - Sum I e') <= g * Sum I e' -> Rabs (α' - w / D') <= q * (w / D') + η ->
  lo i / (c * lo i + Sum others hi) * ((1 - q) / (1 + g)) - η <= α' <=
  hi i / (hi i / c + Sum others lo) * ((1 + q) / (1 - g)) + η.
Proof.
  intros I Hc Hg Hq HL K Hw W1 W2 HD Ha.
  apply (weight_of_terms i others e' lo hi w 1 c D' α' g q η); auto; try lra.
  intros k Hk. rewrite !Rmult_1_l. apply K, Hk.
Qed.
(*< bound.form-running-max *)

(* ---- weights renormalised over the chosen experts ---- *)

(* S is the sum that all quotients p k share. Each chosen p k is then divided by the sum of the chosen ones.
   The quotients p k have errors v and ηp, and S scales ηp. The sum of the chosen has g, the second quotient
   has q and ηw. *)
(*> bound.form-router *)
Theorem bound_form_router {A} (i : A) (others : list A) (e lo hi p : A -> R)
  (S v g q ηp ηw D' w : R) :
  let I := i :: others in
  0 < S -> 0 <= v <= 1 -> 0 <= g < 1 -> 0 <= q <= 1 ->
  (forall k, 0 <= lo k /\ lo k <= e k <= hi k) ->
  (forall k, 0 <= p k /\ Rabs (p k - e k / S) <= v * (e k / S) + ηp) ->
  Rabs (D' - Sum I p) <= g * Sum I p -> Rabs (w - p i / D') <= q * (p i / D') + ηw ->
  let least k := Rmax 0 (lo k * (1 - v) - S * ηp) in let most k := hi k * (1 + v) + S * ηp in
  0 < Sum I least ->
  least i / (least i + Sum others most) * ((1 - q) / (1 + g)) - ηw <= w <=
  most i / (most i + Sum others least) * ((1 + q) / (1 - g)) + ηw.
Proof.
  intros I HS Hv Hg Hq K Hp HD Hw least most HL.
  assert (I0 : 0 < / S) by (apply Rinv_0_lt_compat, HS).
  assert (Kp : forall k, 0 <= least k /\ / S * least k <= p k <= / S * most k).
  { intros k. destruct (K k) as [L [L1 L2]]. destruct (Hp k) as [P0 P]. apply abs_between in P.
    unfold least, most. split; [apply Rmax_l|].
    assert (E : forall x, / S * (x + S * ηp) = x / S + ηp) by (intros; field; lra).
    assert (E' : forall x, / S * (x - S * ηp) = x / S - ηp) by (intros; field; lra).
    assert (A1 : lo k * (1 - v) / S <= e k / S * (1 - v)).
    { replace (e k / S * (1 - v)) with (e k * (1 - v) / S) by (field; lra).
      apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra. }
    assert (A2 : e k / S * (1 + v) <= hi k * (1 + v) / S).
    { replace (e k / S * (1 + v)) with (e k * (1 + v) / S) by (field; lra).
      apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra. }
    rewrite E. split; [|lra].
    unfold Rmax. destruct (Rle_dec _ _); [rewrite E'|]; lra. }
  pose proof (weight_of_terms i others p least most (p i) (/ S) 1 D' w g q ηw) as W. cbv zeta in W.
  replace (most i / 1) with (most i) in W by field. rewrite !Rmult_1_l in W.
  apply W; auto; try lra. apply Kp.
Qed.

(* One format, without underflow, any tree. *)
Corollary bound_form_router_one_format {A} (i : A) (others : list A) (e lo hi : A -> R) (S : R)
  (fl : R -> R) (u : R) (t : tree) :
  let n := length others in
  0 <= u < 1 -> INR n * u < 1 / 2 -> (forall y, Rabs (fl y - y) <= u * Rabs y) -> 0 < S ->
  (forall k, 0 < lo k /\ lo k <= e k <= hi k) ->
  let p k := fl (e k / S) in
  Permutation (terms t) (map (fun k => (p k, 1)) (i :: others)) -> products_round t = 0%nat ->
  let w := fl (p i / eval fl t) in
  let least k := lo k * (1 - u) in let most k := hi k * (1 + u) in
  least i / (least i + Sum others most) * ((1 - u) / (1 + gamma n u)) <= w <=
  most i / (most i + Sum others least) * ((1 + u) / (1 - gamma n u)).
Proof.
  intros n Hu Hn Hfl HS K p P Hp w least most.
  pose proof (gamma_small n u (proj1 Hu) Hn) as Gs.
  assert (Q0 : forall k, 0 < e k / S)
    by (intros k; destruct (K k) as [L [L1 _]]; apply Rdiv_lt_0_compat; lra).
  assert (F : forall k, Rabs (p k - e k / S) <= u * (e k / S)).
  { intros k. unfold p. rewrite <- (Rabs_pos_eq (e k / S)) at 3 by (apply Rlt_le, Q0). apply Hfl. }
  assert (p0 : forall k, 0 < p k).
  { intros k. pose proof (F k) as Fk. apply abs_between in Fk.
    assert (0 < e k / S * (1 - u)) by (apply Rmult_lt_0_compat; [apply Q0 | lra]). lra. }
  assert (ES := positive_sum (i :: others) p n fl u t (proj1 Hu) Hn Hfl ltac:(simpl; unfold n; lia) p0 P Hp).
  assert (SP : 0 < Sum (i :: others) p) by (apply Sum_pos; [discriminate | intros; apply p0]).
  assert (DP : 0 < eval fl t) by (apply Rlt_le_trans with (2 := proj1 ES), Rmult_lt_0_compat; lra).
  set (least' := fun k => Rmax 0 (lo k * (1 - u) - S * 0)). set (most' := fun k => hi k * (1 + u) + S * 0).
  assert (lp : forall k, 0 < least k) by (intros k; apply Rmult_lt_0_compat; [apply K | lra]).
  assert (El : forall k, least' k = least k).
  { intros k. unfold least'. rewrite Rmult_0_r, Rminus_0_r. apply Rmax_right, Rlt_le, lp. }
  assert (Em : forall k, most' k = most k) by (intros k; unfold most', most; ring).
  rewrite <- (El i), <- (Em i), <- (Sum_ext others least' least El), <- (Sum_ext others most' most Em).
  rewrite <- (Rminus_0_r (least' i / _ * _)), <- (Rplus_0_r (most' i / _ * _)).
  apply (bound_form_router i others e lo hi p S u (gamma n u) u 0 0 (eval fl t) w); auto; try lra.
  - intros k. destruct (K k). split; [lra | assumption].
  - intros k. split; [apply Rlt_le, p0 | rewrite Rplus_0_r; apply F].
  - apply Rabs_le. lra.
  - rewrite Rplus_0_r. unfold w. eapply Rle_trans; [apply Hfl|]. right. f_equal. apply Rabs_pos_eq.
    apply Rlt_le, Rdiv_lt_0_compat; [apply p0 | exact DP].
  - change (0 < Sum (i :: others) least'). rewrite (Sum_ext (i :: others) least' least El).
    apply Sum_pos; [discriminate | intros; apply lp].
Qed.
(*< bound.form-router *)
