(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The backward pass of the other stages (chapter 34), and what follows for the sink: the gradient of split keys
   (grad.split), of the sink's other forms (grad.forms), and where its weight is near 0 or 1 (grad.vanishing). As in
   Gradients.v the loss enters by its gradient with respect to a stage's results, and each theorem gives the numbers
   that the direction of the inputs is multiplied by. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences Gradients.
From Coq Require Import Reals List Arith Lia Lra.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

(* Coquelicot's space of results is R. *)
Ltac real := match goal with |- @eq _ ?x ?y => change (@eq R x y) end.

(* ---- linear layers ---- *)

(*> grad.linear *)
Theorem grad_linear (n R C : nat) (W W' x x' : mat) (b b' : vec) (dy : mat) :
  let dx t c := ∑ r < R, W r c * dy t r in
  let dW r c := ∑ t < n, dy t r * x t c in
  let db r := ∑ t < n, dy t r in
  is_derive (fun e => ∑ t < n, ∑ r < R, dy t r *
      ((∑ c < C, (W r c + e * W' r c) * (x t c + e * x' t c)) + (b r + e * b' r))) 0
    ((∑ t < n, ∑ c < C, dx t c * x' t c) + (∑ r < R, ∑ c < C, dW r c * W' r c) + ∑ r < R, db r * b' r).
Proof.
  intros dx dW db.
  replace ((∑ t < n, ∑ c < C, dx t c * x' t c) + (∑ r < R, ∑ c < C, dW r c * W' r c) + ∑ r < R, db r * b' r)
    with (∑ t < n, ∑ r < R, dy t r * ((∑ c < C, (W r c * x' t c + W' r c * x t c)) + b' r)).
  - apply (is_derive_Sum (seq 0 n) (fun t e => _)). intros t _.
    apply (is_derive_Sum (seq 0 R) (fun r e => _)). intros r _.
    apply (is_derive_scal (fun e => (∑ c < C, (W r c + e * W' r c) * (x t c + e * x' t c)) + (b r + e * b' r))).
    apply (is_derive_plus (fun e => ∑ c < C, (W r c + e * W' r c) * (x t c + e * x' t c)) (fun e => b r + e * b' r)).
    + apply (is_derive_Sum (seq 0 C) (fun c e => (W r c + e * W' r c) * (x t c + e * x' t c))). intros c _.
      eapply derive_is; [auto_derive; [exact I | reflexivity] | ring].
    + eapply derive_is; [auto_derive; [exact I | reflexivity] | ring].
  - rewrite (Sum_ext (seq 0 n) _ (fun t =>
      (∑ c < C, dx t c * x' t c) + (∑ r < R, ∑ c < C, dy t r * x t c * W' r c) + ∑ r < R, dy t r * b' r)).
    + rewrite !Sum_plus. f_equal; [f_equal|].
      * rewrite Sum_swap. apply Sum_ext. intros r. rewrite Sum_swap. apply Sum_ext. intros c. unfold dW.
        apply Sum_scal_r.
      * rewrite Sum_swap. apply Sum_ext. intros r. unfold db. apply Sum_scal_r.
    + intros t. unfold dx.
      rewrite (Sum_ext (seq 0 C) (fun c => (∑ r < R, W r c * dy t r) * x' t c)
        (fun c => ∑ r < R, W r c * dy t r * x' t c)) by (intros; rewrite Sum_scal_r; reflexivity).
      rewrite (Sum_swap (seq 0 C)), <- !Sum_plus. apply Sum_ext. intros r.
      rewrite Rmult_plus_distr_l, <- Sum_scal_l. f_equal. rewrite <- Sum_plus. apply Sum_ext. intros c. ring.
Qed.
(*< grad.linear *)

(* ---- scores ---- *)

(* dS i j is 0 where the mask hides key j from query i. *)
(*> grad.qkv *)
Theorem grad_qkv {query key : Type} (d : nat) (I : list query) (J : list key) (q q' : query -> vec)
  (k k' : key -> vec) (dS : query -> key -> R) :
  let dq i := (∑ j ∈ J, (dS i j / sqrt (INR d)) *: k j)%V in
  let dk j := (∑ i ∈ I, (dS i j / sqrt (INR d)) *: q i)%V in
  is_derive (fun t => ∑ i ∈ I, ∑ j ∈ J,
      dS i j * (((q i + t *: q' i)%V ⋅[d] (k j + t *: k' j)%V) / sqrt (INR d))) 0
    ((∑ i ∈ I, dq i ⋅[d] q' i) + ∑ j ∈ J, dk j ⋅[d] k' j).
Proof.
  intros dq dk.
  replace ((∑ i ∈ I, dq i ⋅[d] q' i) + ∑ j ∈ J, dk j ⋅[d] k' j)
    with (∑ i ∈ I, ∑ j ∈ J, dS i j / sqrt (INR d) * ∑ c < d, (q' i c * k j c + q i c * k' j c)).
  - apply (is_derive_Sum I (fun i t => _)). intros i _. apply (is_derive_Sum J (fun j t => _)). intros j _.
    apply (is_derive_ext (fun t => dS i j / sqrt (INR d) * ∑ c < d, (q i c + t * q' i c) * (k j c + t * k' j c)));
      [intros t; real; unfold vdot, vadd, vscal, Rdiv; ring|].
    apply (is_derive_scal (fun t => ∑ c < d, (q i c + t * q' i c) * (k j c + t * k' j c))).
    apply (is_derive_Sum (seq 0 d) (fun c t => (q i c + t * q' i c) * (k j c + t * k' j c))). intros c _.
    eapply derive_is; [auto_derive; [exact Logic.I | reflexivity] | ring].
  - assert (A : ∑ i ∈ I, dq i ⋅[d] q' i = ∑ i ∈ I, ∑ j ∈ J, dS i j / sqrt (INR d) * ∑ c < d, q' i c * k j c).
    { apply Sum_ext. intros i. unfold dq, vdot, vsum, vscal.
      rewrite (Sum_ext _ _ (fun c => ∑ j ∈ J, dS i j / sqrt (INR d) * (q' i c * k j c)))
        by (intros c; rewrite <- Sum_scal_r; apply Sum_ext; intros; ring).
      rewrite Sum_swap. apply Sum_ext. intros j. apply Sum_scal_l. }
    assert (B : ∑ j ∈ J, dk j ⋅[d] k' j = ∑ i ∈ I, ∑ j ∈ J, dS i j / sqrt (INR d) * ∑ c < d, q i c * k' j c).
    { rewrite (Sum_swap I). apply Sum_ext. intros j. unfold dk, vdot, vsum, vscal.
      rewrite (Sum_ext _ _ (fun c => ∑ i ∈ I, dS i j / sqrt (INR d) * (q i c * k' j c)))
        by (intros c; rewrite <- Sum_scal_r; apply Sum_ext; intros; ring).
      rewrite Sum_swap. apply Sum_ext. intros i. apply Sum_scal_l. }
    rewrite A, B, <- Sum_plus. apply Sum_ext. intros i. rewrite <- Sum_plus. apply Sum_ext. intros j.
    rewrite Sum_plus. ring.
Qed.
(*< grad.qkv *)

(* Query head h reads the key or value of head g h: what its gradient u h is multiplied by is that head's direction. *)
(*> grad.group *)
Theorem grad_group (d H G : nat) (g : nat -> nat) (u x' : nat -> vec) : (forall h, (h < H)%nat -> (g h < G)%nat) ->
  ∑ h < H, u h ⋅[d] x' (g h) =
  ∑ m < G, (∑ h ∈ filter (fun h => g h =? m)%nat (seq 0 H), u h)%V ⋅[d] x' m.
Proof.
  intros HG.
  assert (F : forall m (L : list nat) (f : nat -> R),
    ∑ h ∈ filter (fun h => g h =? m)%nat L, f h = ∑ h ∈ L, if (g h =? m)%nat then f h else 0).
  { intros m L f. induction L as [|h L IH]; simpl; [reflexivity|].
    destruct (g h =? m)%nat; simpl; rewrite IH; ring. }
  transitivity (∑ m < G, ∑ h < H, if (g h =? m)%nat then u h ⋅[d] x' m else 0).
  - rewrite Sum_swap. apply Sum_ext_in. intros h Hh. apply in_seq in Hh.
    assert (P : forall n, (g h < n)%nat ->
      ∑ m < n, (if (g h =? m)%nat then u h ⋅[d] x' m else 0) = u h ⋅[d] x' (g h)).
    { intros n. induction n as [|n IH]; [lia|]. intros Hn. rewrite seq_S, Sum_app. simpl.
      destruct (Nat.eq_dec (g h) n) as [E|E].
      - rewrite (Sum_ext_in (seq 0 n) _ (fun _ => 0)).
        + rewrite Sum_zero, E, Nat.eqb_refl. ring.
        + intros m Hm. apply in_seq in Hm. destruct (Nat.eqb_spec (g h) m); [lia | reflexivity].
      - rewrite IH by lia. destruct (Nat.eqb_spec (g h) n); [lia | ring]. }
    symmetry. apply P, HG. lia.
  - apply Sum_ext. intros m. unfold vdot, vsum.
    rewrite (Sum_ext (seq 0 d) _ (fun c => ∑ h < H, if (g h =? m)%nat then u h c * x' m c else 0)).
    + rewrite Sum_swap. apply Sum_ext. intros h. destruct (g h =? m)%nat; [reflexivity | symmetry; apply Sum_zero].
    + intros c. rewrite F, <- Sum_scal_r. apply Sum_ext. intros h. destruct (g h =? m)%nat; ring.
Qed.
(*< grad.group *)

(* One pair of coordinates: the forward turn has c = κ cos, s = κ sin. *)
(*> grad.rotation *)
Theorem grad_rotation (c s x1 x2 x1' x2' dy1 dy2 : R) :
  is_derive (fun t => dy1 * ((x1 + t * x1') * c - (x2 + t * x2') * s)
                    + dy2 * ((x2 + t * x2') * c + (x1 + t * x1') * s)) 0
    ((c * dy1 + s * dy2) * x1' + (c * dy2 - s * dy1) * x2').
Proof. eapply derive_is; [auto_derive; [exact I | reflexivity] | ring]. Qed.
(*< grad.rotation *)

(* ---- norm ---- *)

(*> grad.rmsnorm *)
Theorem grad_rmsnorm (n : nat) (x x' w w' dy : vec) (ε : R) :
  let m := (∑ c < n, x c * x c) / INR n + ε in
  let r := / sqrt m in
  let dx c := r * (w c * dy c - x c * (r * r) * ((∑ k < n, w k * dy k * x k) / INR n)) in
  0 < m ->
  is_derive (fun t => ∑ c < n, dy c * ((w c + t * w' c) * (x c + t * x' c)
      / sqrt ((∑ k < n, (x k + t * x' k) * (x k + t * x' k)) / INR n + ε))) 0
    ((∑ c < n, dx c * x' c) + ∑ c < n, dy c * (x c * r) * w' c).
Proof.
  intros m r dx Hm.
  set (M := fun t => (∑ k < n, (x k + t * x' k) * (x k + t * x' k)) / INR n + ε).
  set (N := fun t => ∑ c < n, dy c * ((w c + t * w' c) * (x c + t * x' c))).
  set (B := ∑ k < n, x k * x' k).
  assert (M0 : M 0 = m).
  { unfold M, m. f_equal. f_equal. apply Sum_ext. intros k. rewrite line_0. reflexivity. }
  assert (N0 : N 0 = ∑ k < n, w k * dy k * x k).
  { unfold N. apply Sum_ext. intros k. rewrite !line_0. ring. }
  assert (DM : is_derive M 0 (2 * B / INR n)).
  { unfold M. eapply derive_is.
    - apply (is_derive_plus (fun t => (∑ k < n, (x k + t * x' k) * (x k + t * x' k)) / INR n) (fun _ => ε)).
      + unfold Rdiv. apply (is_derive_ext (fun t => / INR n * ∑ k < n, (x k + t * x' k) * (x k + t * x' k)));
          [intros t; real; ring|].
        apply (is_derive_scal (fun t => ∑ k < n, (x k + t * x' k) * (x k + t * x' k))).
        apply (is_derive_Sum (seq 0 n) (fun k t => (x k + t * x' k) * (x k + t * x' k)) 0 (fun k => 2 * (x k * x' k))).
        intros k _. eapply derive_is; [auto_derive; [exact I | reflexivity] | ring].
      + apply (is_derive_const ε).
    - unfold plus, zero; simpl. rewrite Sum_scal_l. unfold B, Rdiv. ring. }
  assert (DN : is_derive N 0 (∑ c < n, dy c * (w c * x' c + w' c * x c))).
  { apply (is_derive_Sum (seq 0 n) (fun c t => dy c * ((w c + t * w' c) * (x c + t * x' c)))). intros c _.
    eapply derive_is; [auto_derive; [exact I | reflexivity] | ring]. }
  apply (is_derive_ext (fun t => N t / sqrt (M t))).
  { intros t. real. unfold N, Rdiv at 1. rewrite <- Sum_scal_r. apply Sum_ext. intros c. unfold M, Rdiv. ring. }
  assert (Hs : 0 < sqrt m) by (apply sqrt_lt_R0; exact Hm).
  assert (S2 : sqrt m * sqrt m = m) by (apply sqrt_sqrt; lra).
  assert (DS : is_derive (fun t => sqrt (M t)) 0 (2 * B / INR n * / (2 * sqrt m))).
  { apply (is_derive_comp sqrt M 0 (/ (2 * sqrt m))); [|exact DM].
    rewrite M0. apply is_derive_Reals, derivable_pt_lim_sqrt. exact Hm. }
  eapply derive_is.
  - apply (is_derive_div N (fun t => sqrt (M t)) 0 _ _ DN DS). rewrite M0. lra.
  - rewrite N0, M0.
    set (A := ∑ k < n, w k * dy k * x k).
    rewrite (Sum_ext (seq 0 n) (fun c => dx c * x' c)
      (fun c => r * (w c * dy c * x' c) - r * (r * r) * (A / INR n) * (x c * x' c)))
      by (intros c; unfold dx; fold A; ring).
    rewrite (Sum_ext (seq 0 n) (fun c => dy c * (x c * r) * w' c) (fun c => r * (dy c * (x c * w' c))))
      by (intros; ring).
    rewrite (Sum_ext (seq 0 n) (fun c => dy c * (w c * x' c + w' c * x c))
      (fun c => w c * dy c * x' c + dy c * (x c * w' c))) by (intros; ring).
    rewrite Sum_minus, !Sum_scal_l, Sum_plus. fold B. unfold r.
    set (P := ∑ c < n, w c * dy c * x' c). set (Q := ∑ c < n, dy c * (x c * w' c)).
    unfold Rdiv. generalize (/ INR n). intros i. simpl. field. lra.
Qed.
(*< grad.rmsnorm *)

(* ---- the experts ---- *)

Definition gated (a o g u : R) : R := g * sigmoid (a * g) * (u + o).

(* Away from the limits, and beyond them. *)
(*> grad.swiglu *)
Theorem grad_swiglu (a o l g u : R) :
  let z g u := gated a o (Rmin g l) (Rmax (Rmin u l) (- l)) in
  let σ := sigmoid (a * g) in
  - l < l ->
  (g < l -> is_derive (fun g => z g u) g (σ * (1 + a * g * (1 - σ)) * (Rmax (Rmin u l) (- l) + o))) /\
  (l < g -> is_derive (fun g => z g u) g 0) /\
  (- l < u < l -> is_derive (fun u => z g u) u (Rmin g l * sigmoid (a * Rmin g l))) /\
  (u < - l \/ l < u -> is_derive (fun u => z g u) u 0).
Proof.
  intros z σ Hl. unfold z, gated. split; [|split; [|split]].
  - intros H. set (v := Rmax (Rmin u l) (- l)).
    apply (is_derive_ext_loc (fun g => g * sigmoid (a * g) * (v + o))).
    + apply (locally_interval _ g m_infty l); [exact Logic.I | exact H |].
      intros y _ Hy. rewrite Rmin_left by (simpl in Hy; lra). reflexivity.
    + unfold σ, sigmoid. pose proof (exp_pos (- (a * g))). auto_derive; [lra|]. field. lra.
  - intros H. apply (is_derive_ext_loc (fun _ => l * sigmoid (a * l) * (Rmax (Rmin u l) (- l) + o))).
    + apply (locally_interval _ g l p_infty); [exact H | exact Logic.I |].
      intros y Hy _. rewrite (Rmin_right y) by (simpl in Hy; lra). reflexivity.
    + apply (is_derive_const (l * sigmoid (a * l) * (Rmax (Rmin u l) (- l) + o))).
  - intros [H1 H2]. set (c := Rmin g l * sigmoid (a * Rmin g l)).
    apply (is_derive_ext_loc (fun u => c * (u + o))).
    + apply (locally_interval _ u (- l) l); [exact H1 | exact H2 |].
      intros y Hy1 Hy2. simpl in Hy1, Hy2. rewrite (Rmin_left y), Rmax_left by lra. reflexivity.
    + eapply derive_is; [auto_derive; [exact Logic.I | reflexivity] | ring].
  - intros [H|H].
    + apply (is_derive_ext_loc (fun _ => Rmin g l * sigmoid (a * Rmin g l) * (- l + o))).
      * apply (locally_interval _ u m_infty (- l)); [exact Logic.I | exact H |].
        intros y _ Hy. simpl in Hy. rewrite (Rmin_left y), Rmax_right by lra. reflexivity.
      * apply (is_derive_const (Rmin g l * sigmoid (a * Rmin g l) * (- l + o))).
    + apply (is_derive_ext_loc (fun _ => Rmin g l * sigmoid (a * Rmin g l) * (l + o))).
      * apply (locally_interval _ u l p_infty); [exact H | exact Logic.I |].
        intros y Hy _. simpl in Hy. rewrite (Rmin_right y), Rmax_left by lra. reflexivity.
      * apply (is_derive_const (Rmin g l * sigmoid (a * Rmin g l) * (l + o))).
Qed.
(*< grad.swiglu *)

Lemma softmax_line {key} (T : list key) g g' e : T <> [] ->
  is_derive (fun t => softmax T (fun k => g k + t * g' k) e) 0
    (softmax T g e * (g' e - ∑ k ∈ T, softmax T g k * g' k)).
Proof.
  intros HT. pose proof (sum_exp_pos T g HT) as P. unfold softmax. eapply derive_is.
  - apply (is_derive_div (fun t => exp (g e + t * g' e)) (fun t => ∑ k ∈ T, exp (g k + t * g' k)) 0 (g' e * exp (g e))
      (∑ k ∈ T, g' k * exp (g k)) (exp_line _ _)).
    + apply (is_derive_Sum T (fun k t => exp (g k + t * g' k))). intros k _. apply exp_line.
    + rewrite at_0. lra.
  - rewrite line_0, at_0. simpl.
    rewrite (Sum_ext T (fun k => exp (g k) / _ * g' k) (fun k => g' k * exp (g k) / ∑ j' ∈ T, exp (g j')))
      by (intros; field; lra).
    rewrite Sum_div. field. lra.
Qed.

(* Of the weights of the chosen experts T; the logits outside T do not enter. *)
(*> grad.router *)
Theorem grad_router {expert} (T : list expert) (g g' dw : expert -> R) : T <> [] ->
  let w := softmax T g in
  is_derive (fun t => ∑ e ∈ T, dw e * softmax T (fun k => g k + t * g' k) e) 0
    (∑ e ∈ T, w e * (dw e - ∑ k ∈ T, w k * dw k) * g' e) /\
  (forall g2, (forall e, In e T -> g2 e = g e) -> forall e, In e T -> softmax T g2 e = w e).
Proof.
  intros HT w. split.
  - eapply derive_is.
    + apply (is_derive_Sum T (fun e t => dw e * softmax T (fun k => g k + t * g' k) e) 0
        (fun e => dw e * (softmax T g e * (g' e - ∑ k ∈ T, softmax T g k * g' k)))). intros e _.
      apply (is_derive_scal (fun t => softmax T (fun k => g k + t * g' k) e)), softmax_line, HT.
    + unfold w. generalize (softmax T g). intros W.
      rewrite (Sum_ext T (fun e => dw e * (W e * (g' e - ∑ k ∈ T, W k * g' k)))
        (fun e => W e * dw e * g' e - W e * dw e * ∑ k ∈ T, W k * g' k)) by (intros; ring).
      rewrite (Sum_ext T (fun e => W e * (dw e - ∑ k ∈ T, W k * dw k) * g' e)
        (fun e => W e * dw e * g' e - (∑ k ∈ T, W k * dw k) * (W e * g' e))) by (intros; ring).
      rewrite !Sum_minus, Sum_scal_r, Sum_scal_l. ring.
  - intros g2 E e He. unfold w, softmax. rewrite (E e He). f_equal. apply Sum_ext_in. intros k Hk. rewrite (E k Hk).
    reflexivity.
Qed.
(*< grad.router *)

(*> grad.mixture *)
Theorem grad_mixture {expert} (T : list expert) (C : nat) (w w' : expert -> R) (y y' : expert -> vec) (dout : vec) :
  is_derive (fun t => ∑ c < C, dout c * ∑ e ∈ T, (w e + t * w' e) * (y e c + t * y' e c)) 0
    ((∑ e ∈ T, (dout ⋅[C] y e) * w' e) + ∑ e ∈ T, (w e *: dout)%V ⋅[C] y' e).
Proof.
  eapply derive_is.
  - apply (is_derive_Sum (seq 0 C) (fun c t => dout c * ∑ e ∈ T, (w e + t * w' e) * (y e c + t * y' e c)) 0
      (fun c => dout c * ∑ e ∈ T, (w' e * y e c + w e * y' e c))).
    intros c _. apply (is_derive_scal (fun t => ∑ e ∈ T, (w e + t * w' e) * (y e c + t * y' e c))).
    apply (is_derive_Sum T (fun e t => (w e + t * w' e) * (y e c + t * y' e c))). intros e _.
    eapply derive_is; [auto_derive; [exact I | reflexivity] | ring].
  - rewrite (Sum_ext _ _ (fun c => ∑ e ∈ T, (dout c * y e c * w' e + w e * dout c * y' e c)))
      by (intros c; rewrite <- Sum_scal_l; apply Sum_ext; intros; ring).
    rewrite Sum_swap, <- Sum_plus. apply Sum_ext. intros e. unfold vdot, vscal. rewrite Sum_plus, Sum_scal_r.
    reflexivity.
Qed.
(*< grad.mixture *)

(*> grad.cross-entropy *)
Theorem grad_cross_entropy (n y : nat) (z z' : vec) : (y < n)%nat ->
  let p := softmax (seq 0 n) z in
  is_derive (fun t => - ln (softmax (seq 0 n) (fun v => z v + t * z' v) y)) 0
    (∑ v < n, (p v - if (v =? y)%nat then 1 else 0) * z' v).
Proof.
  intros Hy p. assert (HT : seq 0 n <> []) by (destruct n; [lia | discriminate]).
  pose proof (sum_exp_pos (seq 0 n) z HT) as P.
  assert (Q : 0 < p y) by (apply Rdiv_lt_0_compat; [apply exp_pos | exact P]).
  assert (E : softmax (seq 0 n) (fun v => z v + 0 * z' v) y = p y).
  { unfold p, softmax. rewrite line_0, at_0. reflexivity. }
  eapply derive_is.
  - apply (is_derive_opp (fun t => ln (softmax (seq 0 n) (fun v => z v + t * z' v) y))).
    apply (is_derive_comp ln (fun t => softmax (seq 0 n) (fun v => z v + t * z' v) y) 0); [|apply softmax_line, HT].
    apply is_derive_ln. rewrite E. exact Q.
  - rewrite E. unfold opp, scal; simpl; unfold mult; simpl. clear E. unfold p in *. revert Q.
    generalize (softmax (seq 0 n) z). intros W Q.
    rewrite (Sum_ext _ (fun v => (W v - if (v =? y)%nat then 1 else 0) * z' v)
      (fun v => W v * z' v - if (v =? y)%nat then z' v else 0)) by (intros v; destruct (v =? y)%nat; ring).
    rewrite Sum_minus.
    replace (∑ v < n, if (v =? y)%nat then z' v else 0) with (z' y); [field; lra|].
    clear - Hy. induction n as [|n IH]; [lia|]. rewrite seq_S, Sum_app. simpl.
    destruct (Nat.eq_dec y n) as [->|N].
    + rewrite Nat.eqb_refl, (Sum_ext_in _ _ (fun _ => 0)); [rewrite Sum_zero; ring|].
      intros v Hv. apply in_seq in Hv. destruct (Nat.eqb_spec v n); [lia | reflexivity].
    + rewrite <- IH by lia. destruct (Nat.eqb_spec n y); [lia | ring].
Qed.
(*< grad.cross-entropy *)

(* ---- the sink's gradient in other forms ---- *)

Section Forms.
  Context {key : Type}.
  Implicit Types (J : list key) (s a : key -> R) (b : R).

  (* a j = <dO, v_j>, and D = <dO, O> = sum_j alpha_j a_j (grad.delta). *)
  Definition delta J s b a : R := ∑ j ∈ J, alpha J s b j * a j.

  Lemma alpha_softmax J s b j : J <> [] -> alpha J s b j = (1 - alpha_sink J s b) * softmax J s j.
  Proof.
    intros HJ. pose proof (sum_exp_pos J s HJ). pose proof (den_pos J s b). unfold alpha, alpha_sink, softmax. field. lra.
  Qed.

  Lemma delta_softmax J s b a : J <> [] ->
    delta J s b a = (1 - alpha_sink J s b) * ∑ j ∈ J, softmax J s j * a j.
  Proof.
    intros HJ. unfold delta. rewrite <- Sum_scal_l. apply Sum_ext. intros j. rewrite alpha_softmax by exact HJ. ring.
  Qed.

  (* The gate γ = sigmoid(LSE - b) on the ordinary softmax: through the gate to LSE and b, and through the softmax. A
     column of the softmax that is cut off: one more score, whose weight has the gradient 0. *)
  (*> grad.forms *)
  Theorem grad_forms J s b a j : J <> [] ->
    let γ := sigmoid (LSE J s - b) in
    let p := softmax J s in
    let Δ := ∑ k ∈ J, p k * a k in
    let cut := cat a 0 in
    let P := softmax (with_extra J) (cat s b) in
    p j * (γ * (a j - Δ)) + p j * (γ * (1 - γ) * Δ) = alpha J s b j * (a j - delta J s b a) /\
    - (γ * (1 - γ) * Δ) = - (alpha_sink J s b * delta J s b a) /\
    P (Some j) * (cut (Some j) - ∑ x ∈ with_extra J, P x * cut x) = alpha J s b j * (a j - delta J s b a) /\
    P None * (cut None - ∑ x ∈ with_extra J, P x * cut x) = - (alpha_sink J s b * delta J s b a) /\
    alpha J s 0 j * (a j - delta J s 0 a) =
      softmax1 J s j * (a j - ∑ k ∈ J, softmax1 J s k * a k).
  Proof.
    intros HJ γ p Δ cut P.
    assert (Gm : γ = 1 - alpha_sink J s b) by (unfold γ; symmetry; apply (sink_gate J s (fun _ => 0) b HJ)).
    assert (PS : forall k, P (Some k) = alpha J s b k) by (intros k; unfold P; apply softmax_extra).
    assert (PN : P None = alpha_sink J s b).
    { unfold P. apply (sink_concat_slice J s b). }
    assert (C : ∑ x ∈ with_extra J, P x * cut x = delta J s b a).
    { rewrite Sum_extra. unfold delta, cut, cat.
      rewrite (Sum_ext J _ (fun k => alpha J s b k * a k)) by (intros k; rewrite PS; reflexivity). ring. }
    rewrite C, PS, PN, (delta_softmax J s b a HJ), (alpha_softmax J s b j HJ). fold p Δ. rewrite <- Gm.
    replace (alpha_sink J s b) with (1 - γ) by lra.
    repeat split; try (simpl; ring).
    unfold delta. assert (A : forall k, alpha J s 0 k = softmax1 J s k)
      by (intros k; unfold alpha, softmax1; rewrite exp_0; reflexivity).
    rewrite A. f_equal. f_equal. apply Sum_ext. intros k. rewrite A. reflexivity.
  Qed.
  (*< grad.forms *)

  Lemma alpha_part J s b j (K : list key) : K <> [] ->
    (∑ k ∈ K, exp (s k)) / (exp b + ∑ k ∈ J, exp (s k)) * softmax K s j = alpha J s b j.
  Proof.
    intros HK. pose proof (sum_exp_pos K s HK). pose proof (den_pos J s b). unfold alpha, softmax. field. lra.
  Qed.

  (* The keys in parts K, each with its own softmax and log-sum-exp; w K is the share of a part in the merged row.
     Back through the merge to a part, then through the part's own softmax. *)
  (*> grad.split *)
  Theorem grad_split (parts : list (list key)) s b a : (forall K, In K parts -> K <> []) ->
    let J := concat parts in
    let w K := (∑ k ∈ K, exp (s k)) / (exp b + ∑ k ∈ J, exp (s k)) in
    let A K := ∑ k ∈ K, softmax K s k * a k in
    let D := ∑ K ∈ parts, w K * A K in
    D = delta J s b a /\
    forall K j, In K parts ->
      softmax K s j * (w K * (a j - A K)) + softmax K s j * (w K * (A K - D)) = alpha J s b j * (a j - delta J s b a).
  Proof.
    intros HP J w A D.
    assert (E : D = delta J s b a).
    { unfold D, delta. transitivity (∑ K ∈ parts, ∑ k ∈ K, alpha J s b k * a k).
      - apply Sum_ext_in. intros K HK. unfold A. rewrite <- Sum_scal_l. apply Sum_ext. intros k.
        rewrite <- (alpha_part J s b k K (HP K HK)). unfold w. ring.
      - unfold J at 2. generalize (alpha J s b). intros f. clear. induction parts as [|K L IH]; simpl; [reflexivity|].
        rewrite Sum_app, IH. reflexivity. }
    split; [exact E|]. intros K j HK. rewrite <- E, <- (alpha_part J s b j K (HP K HK)). unfold w. ring.
  Qed.
  (*< grad.split *)

  (* Of one query, where no |<dO, v_j>| exceeds M. *)
  (*> grad.vanishing *)
  Theorem grad_vanishing J s b a M : J <> [] -> (forall j, In j J -> Rabs (a j) <= M) ->
    Rabs (alpha_sink J s b * delta J s b a) <= alpha_sink J s b * (1 - alpha_sink J s b) * M /\
    (forall j, In j J -> Rabs (alpha J s b j * (a j - delta J s b a)) <= alpha J s b j * (2 - alpha_sink J s b) * M).
  Proof.
    intros HJ HM. pose proof (alpha_sink_pos J s b) as S0. pose proof (sink_mass_below_one J s b HJ) as [S1 _].
    assert (D : Rabs (delta J s b a) <= (1 - alpha_sink J s b) * M).
    { rewrite <- sink_mass, <- Sum_scal_r. unfold delta. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le.
      intros j Hj. rewrite Rabs_mult, (Rabs_pos_eq (alpha J s b j)) by apply Rlt_le, alpha_pos.
      apply Rmult_le_compat_l; [apply Rlt_le, alpha_pos | apply HM, Hj]. }
    split.
    - rewrite Rabs_mult, (Rabs_pos_eq (alpha_sink J s b)) by lra. rewrite Rmult_assoc.
      apply Rmult_le_compat_l; lra.
    - intros j Hj. rewrite Rabs_mult, (Rabs_pos_eq (alpha J s b j)) by apply Rlt_le, alpha_pos.
      rewrite Rmult_assoc. apply Rmult_le_compat_l; [apply Rlt_le, alpha_pos|].
      pose proof (HM j Hj). pose proof (Rabs_triang (a j) (- delta J s b a)) as T. rewrite Rabs_Ropp in T.
      unfold Rminus at 1. lra.
  Qed.
  (*< grad.vanishing *)
End Forms.
