(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Error bounds of 1 - alpha_s in its three forms (bound.one-minus), of the row mass in bfloat16 (sink.bf16-mass),
   and of the weighted sum of the values (bound.value). No second-order term is dropped. Assumed of a rounding fl:
   |fl x - x| <= u |x|, or u |x| + η where it may underflow; Summation.v proves this of round to nearest in any
   precision. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences Nodes Summation BoundsSoftmaxSink.
From Coq Require Import Reals List Permutation ZArith Lia Lra.
From Flocq Require Import Core.
From Coquelicot Require Import Rcomplements.
Import ListNotations.
Open Scope R_scope.

Lemma within x e : Rabs x <= e -> - e <= x <= e.
Proof. intros H. unfold Rabs in H. destruct (Rcase_abs _) in H; lra. Qed.

(* For y > 0, |x - y| <= r y is what "relative error r" means. *)
Lemma ratio_error q r y : 1 - r <= q <= 1 + r -> 0 <= y -> Rabs (y * q - y) <= r * y.
Proof. intros H Hy. apply Rabs_le. nra. Qed.

(* ---- a rounding as a factor: fl x = x ρ ---- *)

Lemma fl_factor (fl : R -> R) u x : 0 <= u -> (forall x, Rabs (fl x - x) <= u * Rabs x) ->
  exists ρ, 1 - u <= ρ <= 1 + u /\ fl x = x * ρ.
Proof.
  intros Hu Hfl. specialize (Hfl x). destruct (Req_dec x 0) as [-> | N].
  - exists 1. split; [lra|]. rewrite Rabs_R0, Rmult_0_r, Rminus_0_r in Hfl.
    pose proof (Rabs_pos (fl 0)). rewrite Rmult_0_l.
    destruct (Req_dec (fl 0) 0) as [E|E]; [exact E | apply Rabs_pos_lt in E; lra].
  - exists (fl x / x). split; [|field; exact N].
    assert (E : Rabs ((fl x - x) / x) <= u).
    { unfold Rdiv. rewrite Rabs_mult, Rabs_inv. apply Rabs_pos_lt in N.
      apply Rmult_le_reg_r with (Rabs x); [exact N|].
      rewrite Rmult_assoc, Rinv_l, Rmult_1_r; lra. }
    apply within in E. replace (fl x / x) with (1 + (fl x - x) / x) by (field; exact N). lra.
Qed.

Lemma mul_between a b c d x y : 0 <= a -> a <= x <= b -> 0 <= c -> c <= y <= d -> a * c <= x * y <= b * d.
Proof. intros. split; apply Rmult_le_compat; lra. Qed.

(* ---- 1 - alpha_s ---- *)

Lemma mass_nonneg {key} (J : list key) s b : J <> [] -> 0 <= 1 - alpha_sink J s b.
Proof.
  intros HJ. pose proof (sum_exp_pos J s HJ). pose proof (exp_pos b). unfold alpha_sink.
  replace (1 - _) with ((∑ j ∈ J, exp (s j)) / (exp b + ∑ j ∈ J, exp (s j))) by (field; lra).
  apply Rlt_le, Rdiv_lt_0_compat; lra.
Qed.

(* S' approximates the sum S with relative error p, and D' approximates e^b + S with relative error q. *)
Lemma quotient_between {key} (J : list key) s b (p q S' D' : R) : J <> [] ->
  0 <= p < 1 -> 0 <= q < 1 -> let S := ∑ j ∈ J, exp (s j) in let mass := 1 - alpha_sink J s b in
  S * (1 - p) <= S' <= S * (1 + p) -> (exp b + S) * (1 - q) <= D' <= (exp b + S) * (1 + q) ->
  mass * ((1 - p) / (1 + q)) <= S' / D' <= mass * ((1 + p) / (1 - q)).
Proof.
  intros HJ Hp Hq S mass HS HD. pose proof (sum_exp_pos J s HJ : 0 < S) as SP. pose proof (exp_pos b).
  assert (M : mass = S / (exp b + S)) by (unfold mass, alpha_sink; fold S; field; lra).
  assert (S * (1 - p) > 0) by (apply Rmult_lt_0_compat; lra).
  assert ((exp b + S) * (1 - q) > 0) by (apply Rmult_lt_0_compat; lra).
  pose proof (quotient_bounds _ _ _ _ _ _ H0 HS H1 HD) as Q. rewrite M. split.
  - apply Rle_trans with (2 := proj1 Q). right. field. lra.
  - apply Rle_trans with (1 := proj2 Q). right. field. lra.
Qed.

(* At a y within δ of LSE - b, the sigmoid differs from 1 - alpha_s by at most a factor e^δ. *)
Lemma sigmoid_between {key} (J : list key) s b (δ y : R) : J <> [] ->
  let mass := 1 - alpha_sink J s b in
  Rabs (y - (LSE J s - b)) <= δ -> mass * exp (- δ) <= sigmoid y <= mass * exp δ.
Proof.
  intros HJ mass Hy. apply within in Hy. unfold mass. rewrite (proj1 (sink_gate J s (fun _ => 0) b HJ)).
  set (w := LSE J s - b) in *. unfold sigmoid.
  (* if w - y <= δ, then sigmoid y >= e^-δ sigmoid w; used twice, the second time with y and w exchanged *)
  assert (Q : forall y w δ, w - y <= δ -> 0 <= δ -> 1 / (1 + exp (- w)) * exp (- δ) <= 1 / (1 + exp (- y))).
  { clear. intros y w δ H Hδ. pose proof (exp_pos (- w)). pose proof (exp_pos (- y)).
    pose proof (exp_pos δ). rewrite (exp_Ropp δ).
    replace (1 / (1 + exp (- w)) * / exp δ) with (/ ((1 + exp (- w)) * exp δ)) by (field; lra).
    unfold Rdiv. rewrite Rmult_1_l. apply Rinv_le_contravar; [lra|].
    assert (exp (- y) <= exp (- w) * exp δ) by (rewrite <- exp_plus; apply exp_le; lra).
    assert (1 <= exp δ) by (rewrite <- exp_0; apply exp_le; lra). lra. }
  assert (0 <= δ) by lra. split; [apply Q; lra|].
  pose proof (Q w y δ ltac:(lra) ltac:(lra)) as R1. rewrite (exp_Ropp δ) in R1. pose proof (exp_pos δ).
  apply Rmult_le_reg_r with (/ exp δ); [apply Rinv_0_lt_compat; lra|].
  rewrite Rmult_assoc, Rinv_r, Rmult_1_r by lra. exact R1.
Qed.

(* A factor between 1 / r and r differs from 1 by at most r - 1. *)
Lemma factor_error x y r : 0 <= y -> 0 < r -> y * / r <= x <= y * r -> Rabs (x - y) <= y * (r - 1).
Proof.
  intros Hy Hr H. assert (2 - r <= / r).
  { apply Rmult_le_reg_r with r; [exact Hr|]. rewrite Rinv_l by lra.
    pose proof (Rle_0_sqr (r - 1)) as Z. unfold Rsqr in Z. lra. }
  pose proof (Rmult_le_compat_l y _ _ Hy H0). apply Rabs_le. lra.
Qed.

(* The form 1 - a', where the computed sink weight a' has relative error e. The subtraction multiplies this
   error by a / (1 - a), so about log2 (1 / (1 - a)) bits are lost as a -> 1; the second part of the theorem
   shows that this error is attained. The other two forms, (sum e) / den and sigmoid(LSE - b), keep a relative
   error of order u. Each operation has its own u; η is what the last operation loses by underflow. *)
(*> bound.one-minus *)
Theorem bound_one_minus_subtract (fl : R -> R) (u η e a a' : R) :
  0 <= u -> (forall x, Rabs (fl x - x) <= u * Rabs x + η) -> 0 < a < 1 -> Rabs (a' - a) <= e * a ->
  Rabs (fl (1 - a') - (1 - a)) <= (u + (1 + u) * (e * a / (1 - a))) * (1 - a) + η /\
  (a' = a * (1 - e) -> (1 - a') - (1 - a) = (e * a / (1 - a)) * (1 - a)).
Proof.
  intros Hu Hfl Ha Ha'. split; [|intros ->; field; lra].
  replace ((u + (1 + u) * (e * a / (1 - a))) * (1 - a)) with ((1 + u) * (e * a) + u * (1 - a))
    by (field; lra).
  apply (operation_step _ (1 - a')); auto.
  - rewrite Rabs_pos_eq; lra.
  - replace (1 - a' - (1 - a)) with (- (a' - a)) by ring. rewrite Rabs_Ropp. exact Ha'.
Qed.

(* The form (sum e) / den. The sum of the numerator has relative error p, that of the denominator q. *)
Theorem bound_one_minus {key} (J : list key) s b (fl : R -> R) (u η p q S' D' : R) : J <> [] ->
  0 <= u -> (forall x, Rabs (fl x - x) <= u * Rabs x + η) -> 0 <= p < 1 -> 0 <= q < 1 ->
  let S := ∑ j ∈ J, exp (s j) in let D := exp b + S in let mass := 1 - alpha_sink J s b in
  Rabs (S' - S) <= p * S -> Rabs (D' - D) <= q * D ->
  Rabs (fl (S' / D') - mass) <= ((1 + u) * (1 + p) / (1 - q) - 1) * mass + η.
Proof.
  intros HJ Hu Hfl Hp Hq S D mass HS HD. apply abs_between in HS. apply abs_between in HD.
  pose proof (quotient_between J s b p q S' D' HJ Hp Hq) as [L U]; [fold S; lra | fold S D; lra |].
  fold mass in L, U. assert (M : 0 <= mass) by (apply mass_nonneg; exact HJ).
  set (r := (1 + p) / (1 - q)) in *.
  assert (F : Rabs (S' / D' - mass) <= mass * (r - 1)).
  { apply Rabs_le. assert (2 - r <= (1 - p) / (1 + q)).
    { unfold r. apply Rmult_le_reg_r with ((1 - q) * (1 + q)); [apply Rmult_lt_0_compat; lra|].
      field_simplify; [nra | lra | lra]. }
    pose proof (Rmult_le_compat_l mass _ _ M H). lra. }
  replace ((1 + u) * (1 + p) / (1 - q)) with ((1 + u) * r) by (unfold r; field; lra).
  replace (((1 + u) * r - 1) * mass + η) with ((1 + u) * (mass * (r - 1)) + u * mass + η) by ring.
  apply (operation_step _ (S' / D')); auto. rewrite Rabs_pos_eq; lra.
Qed.

(* The form sigmoid(y), where y is within δ of LSE - b. The exponential has relative error ε. The sum and the
   quotient round, each in its own format. (A sum that is at least 1 never underflows.) *)
Theorem bound_one_minus_sigmoid {key} (J : list key) s b (add div : R -> R) (u v η e ε δ y : R) :
  J <> [] -> 0 <= u -> (forall x, Rabs (div x - x) <= u * Rabs x + η) ->
  0 <= v < 1 -> (forall x, Rabs (add x - x) <= v * Rabs x) -> 0 <= e < 1 -> Rabs ε <= e ->
  Rabs (y - (LSE J s - b)) <= δ -> let mass := 1 - alpha_sink J s b in
  Rabs (div (1 / add (1 + exp (- y) * (1 + ε))) - mass) <=
    (exp δ * ((1 + u) / ((1 - v) * (1 - e))) - 1) * mass + η.
Proof.
  intros HJ Hu Hdiv Hv Hadd He Hε Hy mass. apply within in Hε.
  pose proof (sigmoid_between J s b δ y HJ Hy) as Q. fold mass in Q.
  assert (M : 0 <= mass) by (apply mass_nonneg; exact HJ).
  set (E := exp (- y)) in *. pose proof (exp_pos (- y) : 0 < E) as EP.
  assert (SE : sigmoid y = / (1 + E)) by (unfold sigmoid, E; unfold Rdiv; ring).
  destruct (fl_factor add v (1 + E * (1 + ε)) (proj1 Hv) Hadd) as (ρ & R1 & E1). rewrite E1.
  assert (0 <= E * (1 + ε)) by (apply Rmult_le_pos; lra).
  assert (K : (1 + E) * (1 - e) <= 1 + E * (1 + ε) <= (1 + E) * (1 + e)) by nra.
  assert (K0 : 0 < (1 + E) * (1 - e)) by (apply Rmult_lt_0_compat; lra).
  pose proof (mul_between _ _ _ _ _ _ (Rlt_le _ _ K0) K (Rlt_le 0 (1 - v) ltac:(lra)) R1) as D.
  assert (D0 : 0 < (1 + E) * (1 - e) * (1 - v)) by (apply Rmult_lt_0_compat; lra).
  set (d := (1 + E * (1 + ε)) * ρ) in *.
  pose proof (quotient_bounds 1 1 1 _ _ d ltac:(lra) ltac:(lra) D0 D) as V.
  set (r := / ((1 - v) * (1 - e))).
  assert (P1 : 0 < (1 - v) * (1 - e)) by (apply Rmult_lt_0_compat; lra).
  assert (r0 : 0 < r) by (apply Rinv_0_lt_compat; lra).
  pose proof (exp_pos δ) as X0. assert (q0 : 0 < exp δ * r) by (apply Rmult_lt_0_compat; assumption).
  assert (F : Rabs (1 / d - mass) <= mass * (exp δ * r - 1)).
  { apply factor_error; [exact M | exact q0 |]. split.
    - eapply Rle_trans; [|apply V]. apply Rle_trans with (sigmoid y * / r).
      + replace (mass * / (exp δ * r)) with (mass * exp (- δ) * / r) by (rewrite exp_Ropp; field; lra).
        apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, r0 | apply Q].
      + rewrite SE. unfold r. rewrite Rinv_inv.
        replace (1 / _) with (/ (1 + E) * (1 / ((1 + e) * (1 + v)))) by (field; lra).
        apply Rmult_le_compat_l; [apply Rlt_le, Rinv_0_lt_compat; lra|].
        apply Rmult_le_reg_r with ((1 + e) * (1 + v)); [apply Rmult_lt_0_compat; lra|].
        replace (1 / _ * _) with 1 by (field; lra).
        assert (0 <= 1 - e * e <= 1) by nra. assert (0 <= 1 - v * v <= 1) by nra.
        replace (_ * _) with ((1 - e * e) * (1 - v * v)) by ring. nra.
    - eapply Rle_trans; [apply V|]. replace (1 / _) with (sigmoid y * r)
        by (rewrite SE; unfold r; field; lra).
      rewrite <- Rmult_assoc. apply Rmult_le_compat_r; lra. }
  replace (exp δ * ((1 + u) / ((1 - v) * (1 - e)))) with ((1 + u) * (exp δ * r)) by (unfold r; field; lra).
  replace (((1 + u) * (exp δ * r) - 1) * mass + η)
    with ((1 + u) * (mass * (exp δ * r - 1)) + u * mass + η) by ring.
  apply (operation_step _ (1 / d)); auto. rewrite Rabs_pos_eq; lra.
Qed.
(*< bound.one-minus *)

(* ---- the row mass in bfloat16 ---- *)

(* The computed weights α' k have relative error e. They are rounded to a format with relative error v and
   underflow η. The row sum and 1 - alpha_s then differ by at most w + (n + 1) η, where w is of order v + e
   for any number n of keys. The last theorem of the region shows that they can differ. *)
(*> sink.bf16-mass *)
Theorem sink_bf16_mass {key} (J : list key) s b (rnd : R -> R) (e v η : R) (α' : option key -> R) :
  0 <= v -> (forall x, Rabs (rnd x - x) <= v * Rabs x + η) ->
  let α := softmax (with_extra J) (cat s b) in
  (forall k, Rabs (α' k - α k) <= e * α k) ->
  let w := (1 + v) * e + v in
  Rabs ((∑ j ∈ J, rnd (α' (Some j))) - (1 - rnd (α' None))) <= w + INR (length J + 1) * η.
Proof.
  intros Hv Hr α He w. set (I := with_extra J).
  assert (A : ∑ k ∈ I, α k = 1) by (apply softmax_mass; unfold I, with_extra; destruct J; discriminate).
  replace (_ - (1 - _)) with ((∑ k ∈ I, rnd (α' k)) - 1) by (unfold I; rewrite Sum_extra; ring).
  rewrite <- A, <- Sum_minus. eapply Rle_trans; [apply Sum_abs|].
  rewrite <- (length_extra J). fold I.
  replace (w + _) with (∑ k ∈ I, (α k * w + η))
    by (rewrite Sum_plus, Sum_scal_r, A, Sum_const; ring).
  apply Sum_le. intros k _. assert (0 <= α k).
  { apply Rlt_le, Rdiv_lt_0_compat; [apply exp_pos|].
    apply sum_exp_pos. unfold with_extra. destruct J; discriminate. }
  eapply Rle_trans; [apply (round_step rnd v η Hv Hr _ (α k) (α k) (e * α k)) | unfold w; lra].
  - rewrite Rabs_pos_eq; lra.
  - apply He.
Qed.

Definition bf16 : R -> R := nearest_FLT (-133) 8 (fun n => negb (Z.even n)).

Corollary sink_bf16_mass_nearest {key} (J : list key) s b :
  let α := softmax (with_extra J) (cat s b) in
  Rabs ((∑ j ∈ J, bf16 (α (Some j))) - (1 - bf16 (α None))) <=
  / 256 + INR (length J + 1) * (/ 2 * bpow radix2 (-133)).
Proof.
  intros α.
  replace (/ 256) with ((1 + / 256) * 0 + / 256) by ring.
  apply (sink_bf16_mass J s b bf16 0 (/ 256) (/ 2 * bpow radix2 (-133)) α); [lra | |].
  - intros x. unfold bf16. eapply Rle_trans; [apply nearest_FLT_error; easy|].
    unfold unit_roundoff, half_smallest. simpl. right. f_equal. f_equal. lra.
  - intros k. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
Qed.

(* One third in bfloat16 is 171/512. *)
Lemma bf16_third : bf16 (1 / 3) = 171 / 512.
Proof.
  unfold bf16, nearest_FLT, round, scaled_mantissa, cexp.
  assert (M : mag radix2 (1 / 3) = (-1)%Z :> Z).
  { apply mag_unique. rewrite Rabs_pos_eq by lra. simpl. lra. }
  rewrite M. unfold FLT_exp. simpl Z.max. simpl Z.opp.
  rewrite (Znearest_imp _ _ 171).
  - unfold F2R. simpl. lra.
  - simpl. apply Rabs_def1; lra.
Qed.

(* Two keys whose scores equal the sink's logit: the row sums to 342/512, but 1 - alpha_s is 341/512. *)
Theorem sink_bf16_mass_differs : exists (J : list nat) s b,
  let α := softmax (with_extra J) (cat s b) in
  ∑ j ∈ J, bf16 (α (Some j)) <> 1 - bf16 (α None).
Proof.
  exists [0%nat; 1%nat], (fun _ => 0), 0. cbv zeta.
  assert (T : forall k, softmax (with_extra [0%nat; 1%nat]) (cat (fun _ => 0) 0) k = 1 / 3).
  { intros k. unfold softmax, with_extra. simpl. destruct k; simpl; rewrite exp_0; lra. }
  simpl. rewrite !T, bf16_third. lra.
Qed.
(*< sink.bf16-mass *)

(* ---- the weighted values ---- *)

(* A sum of products whose factors α' and v' have absolute errors of at most dα and dv. *)
Lemma products_moved {key} (J : list key) (α α' dα v v' dv : key -> R) :
  (forall j, Rabs (α' j - α j) <= dα j) -> (forall j, Rabs (v' j - v j) <= dv j) ->
  let R := ∑ j ∈ J, (dα j * Rabs (v j) + Rabs (α j) * dv j + dα j * dv j) in
  Rabs ((∑ j ∈ J, α' j * v' j) - ∑ j ∈ J, α j * v j) <= R /\
  (∑ j ∈ J, Rabs (α' j * v' j)) <= (∑ j ∈ J, Rabs (α j * v j)) + R.
Proof.
  intros Hα Hv R.
  assert (K : forall j, Rabs (α' j * v' j - α j * v j) <= dα j * Rabs (v j) + Rabs (α j) * dv j + dα j * dv j).
  { intros j. specialize (Hα j). specialize (Hv j).
    replace (α' j * v' j - α j * v j)
      with ((α' j - α j) * v j + (α j * (v' j - v j) + (α' j - α j) * (v' j - v j))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rplus_assoc. rewrite (Rabs_mult _ (v j)).
    apply Rplus_le_compat; [apply Rmult_le_compat_r; [apply Rabs_pos | exact Hα]|].
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
    apply Rplus_le_compat; [apply Rmult_le_compat_l; [apply Rabs_pos | exact Hv]|].
    apply Rmult_le_compat; try apply Rabs_pos; assumption. }
  split.
  - rewrite <- Sum_minus. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros j _. apply K.
  - unfold R. rewrite <- Sum_plus. apply Sum_le. intros j _. specialize (K j).
    pose proof (Rabs_triang (α j * v j) (α' j * v' j - α j * v j)) as T.
    replace (α j * v j + (α' j * v' j - α j * v j)) with (α' j * v' j) in T by ring. lra.
Qed.

(* o = sum_j alpha_j v_j. The weights and the values already carry errors dα and dv. Their products are added
   by any tree, rounded to nearest in a format with underflow. *)
(*> bound.value *)
Theorem bound_value {key} (J : list key) (α α' dα v v' dv : key -> R)
  (emin prec : Z) (choice : Z -> bool) (t : tree) : (0 < prec)%Z ->
  (forall j, Rabs (α' j - α j) <= dα j) -> (forall j, Rabs (v' j - v j) <= dv j) ->
  Permutation (terms t) (map (fun j => (α' j, v' j)) J) ->
  let n := length J in let u := unit_roundoff prec in let η := half_smallest emin in INR n * u < 1 ->
  let A := ∑ j ∈ J, Rabs (α j * v j) in
  let R := ∑ j ∈ J, (dα j * Rabs (v j) + Rabs (α j) * dv j + dα j * dv j) in
  Rabs (eval (nearest_FLT emin prec choice) t - ∑ j ∈ J, α j * v j) <=
    gamma n u * (A + R) + R + INR n * (1 + gamma n u) * η.
Proof.
  intros Hp Hα Hv P n u η Hn A R. destruct (products_moved J α α' dα v v' dv Hα Hv) as [M S].
  fold A R in M, S.
  assert (D : (depth t <= n)%nat).
  { pose proof (depth_le t) as D. pose proof (products_round_le t).
    rewrite (Permutation_length P), map_length in D. unfold n. lia. }
  pose proof (nearest_error emin prec choice t n Hp D Hn) as B. fold u η in B.
  rewrite (dot_perm _ _ P), (absdot_perm _ _ P), (Permutation_length P), map_length in B.
  unfold dot, absdot in B. rewrite !Sum_map in B. cbn [fst snd] in B. fold n in B.
  replace (eval _ t - _) with ((eval (nearest_FLT emin prec choice) t - ∑ j ∈ J, α' j * v' j)
    + ((∑ j ∈ J, α' j * v' j) - ∑ j ∈ J, α j * v j)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (G : 0 <= gamma n u).
  { pose proof (pos_INR n). pose proof (unit_roundoff_nonneg prec).
    apply Rmult_le_pos; [apply Rmult_le_pos; assumption | apply Rlt_le, Rinv_0_lt_compat; lra]. }
  pose proof (Rmult_le_compat_l _ _ _ G S). lra.
Qed.

(* The same where each operation has its own error bound. *)
Theorem bound_value_nodes {key} (J : list key) (α α' dα v v' dv : key -> R) (t : nodes) : honest t ->
  (forall j, Rabs (α' j - α j) <= dα j) -> (forall j, Rabs (v' j - v j) <= dv j) ->
  Permutation (products t) (map (fun j => (α' j, v' j)) J) ->
  let A := ∑ j ∈ J, Rabs (α j * v j) in
  let R := ∑ j ∈ J, (dα j * Rabs (v j) + Rabs (α j) * dv j + dα j * dv j) in
  Rabs (value t - ∑ j ∈ J, α j * v j) <= (growth t - 1) * (A + R) + R + underflow t.
Proof.
  intros H Hα Hv P A R. destruct (products_moved J α α' dα v v' dv Hα Hv) as [M S]. fold A R in M, S.
  pose proof (bound_dot_nodes t _ H P) as B. rewrite !Sum_map in B. cbn [fst snd] in B.
  pose proof (growth_ge_1 t H).
  replace (value t - _) with ((value t - ∑ j ∈ J, α' j * v' j)
    + ((∑ j ∈ J, α' j * v' j) - ∑ j ∈ J, α j * v j)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  pose proof (Rmult_le_compat_l (growth t - 1) _ _ ltac:(lra) S). lra.
Qed.
(*< bound.value *)
