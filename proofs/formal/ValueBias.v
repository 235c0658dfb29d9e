(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* What the sink does to the value bias (chapter 15): the derivatives of the factor 1 - alpha_s
   (sink.bias-intensity), and the limits of the output for sink logits towards -inf and +inf (sink.bias-limits).
   Assumed for the limit at -inf: every head sees a key. *)

From Sinkproof Require Import Sums SoftmaxSink Derivation General.
From Coq Require Import Reals List Lra.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

Section Row.
  Context {key : Type}.
  Implicit Types (J : list key) (s : key -> R) (b : R).

  (* d alpha_s / d b = alpha_s (1 - alpha_s). *)
  Lemma alpha_sink_derive J s b :
    is_derive (alpha_sink J s) b (alpha_sink J s b * (1 - alpha_sink J s b)).
  Proof.
    unfold alpha_sink. pose proof (den_pos J s b). auto_derive; [lra|]. field. lra.
  Qed.

  (* y = e^-b turns the limit b -> +inf into y -> 0. With S = sum e^s, alpha_s = 1 / (1 + y S) and alpha = y
     e^s / (1 + y S). *)
  Lemma alpha_sink_by_y J s b : alpha_sink J s b = 1 / (1 + exp (- b) * ∑ j ∈ J, exp (s j)).
  Proof.
    pose proof (den_pos J s b). pose proof (exp_pos b). unfold alpha_sink.
    rewrite exp_Ropp. field. split; lra.
  Qed.

  Lemma alpha_by_y J s b j :
    alpha J s b j = exp (- b) * exp (s j) / (1 + exp (- b) * ∑ k ∈ J, exp (s k)).
  Proof.
    pose proof (den_pos J s b). pose proof (exp_pos b). unfold alpha.
    rewrite exp_Ropp. field. split; lra.
  Qed.

  Lemma exp_opp_at_p_infty : is_lim (fun b => exp (- b)) p_infty 0.
  Proof.
    apply (is_lim_comp exp Ropp p_infty 0 m_infty); [apply is_lim_exp_m | | exists 0; easy].
    apply (is_lim_opp (fun b => b) p_infty p_infty), is_lim_id.
  Qed.

  (* A function of e^b (or e^-b) that is differentiable at 0 has as its limit the value at 0. *)
  Lemma lim_through (f e : R -> R) (x : Rbar) (h : R -> R) :
    is_lim e x 0 -> ex_derive f 0 -> (forall b, h b = f (e b)) -> is_lim h x (f 0).
  Proof.
    intros He Hf Hh. apply (is_lim_ext (fun b => f (e b))); [intros; symmetry; apply Hh|].
    apply is_lim_comp_continuous; [exact He|]. apply (ex_derive_continuous f), Hf.
  Qed.

  Lemma alpha_at_p_infty J s j : is_lim (fun b => alpha J s b j) p_infty 0.
  Proof.
    replace (Finite 0) with (Finite (0 * exp (s j) / (1 + 0 * ∑ k ∈ J, exp (s k))))
      by (f_equal; field; lra).
    apply (lim_through (fun y => y * exp (s j) / (1 + y * ∑ k ∈ J, exp (s k)))
             (fun b => exp (- b))); [apply exp_opp_at_p_infty | auto_derive; lra |].
    intros b. apply alpha_by_y.
  Qed.

  Lemma alpha_sink_at_p_infty J s : is_lim (alpha_sink J s) p_infty 1.
  Proof.
    replace (Finite 1) with (Finite (1 / (1 + 0 * ∑ k ∈ J, exp (s k)))) by (f_equal; field; lra).
    apply (lim_through (fun y => 1 / (1 + y * ∑ k ∈ J, exp (s k))) (fun b => exp (- b)));
      [apply exp_opp_at_p_infty | auto_derive; lra |].
    intros b. apply alpha_sink_by_y.
  Qed.

  Lemma alpha_at_m_infty J s j : J <> [] -> is_lim (fun b => alpha J s b j) m_infty (softmax J s j).
  Proof.
    intros HJ. pose proof (sum_exp_pos J s HJ).
    replace (softmax J s j) with (exp (s j) / (0 + ∑ k ∈ J, exp (s k)))
      by (unfold softmax; f_equal; ring).
    apply (lim_through (fun y => exp (s j) / (y + ∑ k ∈ J, exp (s k))) exp);
      [apply is_lim_exp_m | auto_derive; lra | reflexivity].
  Qed.

  Lemma alpha_sink_at_m_infty J s : J <> [] -> is_lim (alpha_sink J s) m_infty 0.
  Proof.
    intros HJ. pose proof (sum_exp_pos J s HJ).
    replace (Finite 0) with (Finite (0 / (0 + ∑ k ∈ J, exp (s k)))) by (f_equal; field; lra).
    apply (lim_through (fun y => y / (y + ∑ k ∈ J, exp (s k))) exp);
      [apply is_lim_exp_m | auto_derive; lra | reflexivity].
  Qed.

  (* The value-bias term of a head at one output coordinate is (1 - alpha_s) w, where w = (b^V_h W^O_h)_c. The
     theorem gives its derivatives in alpha_s and in b. *)
  (*> sink.bias-intensity *)
  Theorem sink_bias_intensity J s (bVh : vec) (WOh : mat) (d' c : nat) :
    let w := (bVh *[d'] WOh)%V c in
    (forall a, is_derive (fun a => (1 - a) * w) a (- w)) /\
    (forall b, is_derive (fun b => (1 - alpha_sink J s b) * w) b
                 (- alpha_sink J s b * (1 - alpha_sink J s b) * w)).
  Proof.
    intros w. split; intros t.
    - auto_derive; [easy | ring].
    - pose proof (alpha_sink_derive J s t) as D. auto_derive; [eexists; exact D|].
      replace (Derive _ t) with (alpha_sink J s t * (1 - alpha_sink J s t))
        by (symmetry; apply is_derive_unique; exact D). ring.
  Qed.
  (*< sink.bias-intensity *)
End Row.

Lemma is_lim_Sum {A} (J : list A) (f : A -> R -> R) (l : A -> R) (x : Rbar) :
  (forall j, is_lim (f j) x (l j)) -> is_lim (fun t => ∑ j ∈ J, f j t) x (∑ j ∈ J, l j).
Proof.
  intros Hf. induction J as [|j J IH]; simpl; [apply is_lim_const|].
  apply (is_lim_plus' (f j) (fun t => ∑ k ∈ J, f k t)); [apply Hf | exact IH].
Qed.

Lemma is_lim_times (f : R -> R) (x : Rbar) (l c : R) :
  is_lim f x l -> is_lim (fun t => f t * c) x (l * c).
Proof. intros Hf. apply (is_lim_scal_r f c x l Hf). Qed.

(* Attention is continuous in its weights, so a limit of the weights gives the limit of the output. *)
Lemma attend_lim {key} d H d' g WV WO bV bO (x : key -> vec) (J : nat -> list key)
  (w : R -> nat -> key -> R) (l : nat -> key -> R) (t0 : Rbar) (c : nat) :
  (forall h j, is_lim (fun t => w t h j) t0 (l h j)) ->
  is_lim (fun t => attend d H d' g WV WO bV bO x J (w t) c) t0
    (attend d H d' g WV WO bV bO x J l c).
Proof.
  intros Hw. unfold attend, vadd, vmul, concat_heads, vsum, vscal.
  apply (is_lim_plus' (fun t => Sum _ _) (fun _ => bO c)); [|apply is_lim_const].
  apply (is_lim_Sum _ (fun r t => _)). intros r. apply is_lim_times.
  apply (is_lim_Sum _ (fun j t => _)). intros j. apply is_lim_times, Hw.
Qed.

Lemma shifted (f : R -> R) (b : R) (x l : Rbar) : (x = p_infty \/ x = m_infty) ->
  is_lim f x l -> is_lim (fun t => f (b + t)) x l.
Proof.
  intros Hx Hf. apply (is_lim_comp f (fun t => b + t) x l x); [exact Hf | |].
  - pose proof (is_lim_plus (fun _ => b) (fun t => t) x b x x
                 (is_lim_const b x) (is_lim_id x)) as P.
    apply P. destruct Hx as [-> | ->]; reflexivity.
  - destruct Hx as [-> | ->]; exists 0; easy.
Qed.

(* All sink logits are shifted together by t. As t -> -inf, the output becomes ordinary softmax attention with
   the whole value bias b^V W^O. As t -> +inf, every query attends to nothing and the output becomes b^O. *)
(*> sink.bias-limits *)
Theorem sink_bias_limits {key} d H d' g WV WO bV bO (x : key -> vec) s (J : nat -> list key) b c :
  let output t := sink_attention d H d' g WV WO bV bO x s J (fun h => b h + t) c in
  let tokens h := (∑ j ∈ J h, softmax (J h) (s h) j *:
                     (x j *[d] columns d' (g h) WV *[d'] rows d' h WO))%V in
  is_lim output p_infty (bO c) /\
  ((forall h, J h <> []) ->
   is_lim output m_infty (((∑ h < H, tokens h) + bV_by_head d' g bV *[H * d'] WO + bO)%V c)).
Proof.
  intros output tokens. split.
  - replace (bO c) with (attend d H d' g WV WO bV bO x J (fun _ _ => 0) c).
    + apply (attend_lim _ _ _ _ _ _ _ _ _ _ (fun t h j => alpha (J h) (s h) (b h + t) j)).
      intros h j. apply (shifted (fun t => alpha (J h) (s h) t j)); auto using alpha_at_p_infty.
    + rewrite attend_mass. unfold vadd, vsum, vscal. rewrite !(Sum_is_zero (seq 0 H)); [ring | |].
      * intros h. rewrite Sum_zero. ring.
      * intros h. apply Sum_is_zero. intros j. ring.
  - intros HJ.
    replace (((∑ h < H, tokens h) + _ + _)%V c)
      with (attend d H d' g WV WO bV bO x J (fun h j => softmax (J h) (s h) j) c).
    + apply (attend_lim _ _ _ _ _ _ _ _ _ _ (fun t h j => alpha (J h) (s h) (b h + t) j)).
      intros h j. apply (shifted (fun t => alpha (J h) (s h) t j)); auto using alpha_at_m_infty.
    + rewrite attend_mass. unfold tokens, bV_by_head. rewrite mul_concat.
      apply (f_equal (fun u : vec => u c)). f_equal. f_equal. apply vsum_ext. intros h.
      at_coordinate e. replace (∑ j ∈ J h, softmax (J h) (s h) j) with 1; [ring|].
      pose proof (sum_exp_pos (J h) (s h) (HJ h)). unfold softmax. rewrite Sum_div. field. lra.
Qed.
(*< sink.bias-limits *)
